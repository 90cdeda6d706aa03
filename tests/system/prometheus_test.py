"""gpud's metrics in a real Prometheus: it scrapes a gpud with simulated devices and, if there is the double of CUDA, one
with a GPU; every query of the alerts and of the dashboard has data. promtool finds nothing to complain of. Exit code 77:
there is no Prometheus.

usage: prometheus_test.py BIN SOURCE DOUBLE
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

PATIENCE_S = 60 * int(os.environ.get("GPUD_TEST_PATIENCE", "1"))
SKIPPED = 77
PROMETHEUS_YML = """\
global:
  scrape_interval: 500ms
  scrape_timeout: 500ms
  evaluation_interval: 250ms
rule_files: [alerts.yml]
scrape_configs:
  - job_name: gpud
    static_configs:
      - targets: [%s]
"""
# What a comparison at the end of an alert compares: the alert has data only while it fires.
COMPARISON = re.compile(r"^(.*) (?:==|!=|>|<|>=|<=) [0-9.]+$")
# What only a GPU reports.
HEALTH = re.compile("gpud_device_(temperature|power|energy|utilization|memory_used|ecc|throttled)")
# What only a daemon with a certificate for other hosts reports.
REMOTE = re.compile("gpud_certificate_")
GRAFANA = {"$__rate_interval": "5s", "$instance": ".*"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(port, path, **headers):
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except OSError as e:
        return 0, str(e)


def until(what, function):
    """Waits until the function returns something that is true, and returns it."""
    end = time.monotonic() + PATIENCE_S
    while True:
        result = function()
        if result:
            return result
        if time.monotonic() > end:
            sys.exit("never happened: " + what)
        time.sleep(0.05)


def api(port, path, **arguments):
    status, body = get(port, "/api/v1/%s?%s" % (path, urllib.parse.urlencode(arguments)))
    answer = json.loads(body) if status != 0 else {"status": body}
    return answer["data"] if answer["status"] == "success" else sys.exit("%s %s: %s" % (path, arguments, body))


def queries_of_dashboard(path):
    """(where, query) of each panel, as Grafana would send them."""
    with open(path, encoding="utf-8") as f:
        dashboard = json.load(f)
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"]
            for name, value in GRAFANA.items():
                query = query.replace(name, value)
            yield "panel \"%s\"" % panel["title"], query


def queries_of_rules(port):
    for group in until("rules are evaluated", lambda: evaluated(port)):
        for rule in group["rules"]:
            if rule["health"] != "ok":
                sys.exit("rule %s: %s %s" % (rule["name"], rule["health"], rule.get("lastError")))
            compared = COMPARISON.match(rule["query"])
            yield "rule %s" % rule["name"], compared.group(1) if compared else rule["query"]


def evaluated(port):
    groups = api(port, "rules")["groups"]
    return groups if groups and all(r["health"] != "unknown" for g in groups for r in g["rules"]) else None


def check_queries(port, source, gpus):
    count = 0
    for where, query in list(queries_of_rules(port)) + list(
            queries_of_dashboard(os.path.join(source, "packaging/monitoring/gpud-dashboard.json"))):
        if REMOTE.search(query) or HEALTH.search(query) and not gpus:
            continue
        until("%s has data: %s" % (where, query), lambda: api(port, "query", query=query)["result"])
        count += 1
    print("%d queries have data" % count)
    if count < 50:
        sys.exit("some queries were not found")


def check_firing(port, daemons):
    """Only the alerts that are to be there: none while gpud serves, GpudDown once it does not answer."""
    def alerts():
        return {a["labels"]["alertname"] for a in api(port, "alerts")["alerts"]}
    if alerts() - {"GpudDown"}: # it waits where a busy machine delays a scrape
        sys.exit("a gpud that serves has alerts: %s" % alerts())
    for daemon in daemons:
        end(daemon)
    until("the alert GpudDown", lambda: alerts() == {"GpudDown"})


def check_text(port):
    status, text = get(port, "/metrics")
    told = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
    if status != 200 or told.returncode != 0 or told.stdout or told.stderr:
        sys.exit("promtool check metrics: %d\n%s%s" % (status, told.stdout, told.stderr))


def check_exemplar(port):
    """Prometheus took OpenMetrics, whose exemplars it stores."""
    def stored():
        return api(port, "query_exemplars", query="gpud_job_duration_seconds_bucket", start=time.time() - 300,
                   end=time.time() + 60)
    found = until("exemplars are stored", stored)
    trace = found[0]["exemplars"][0]["labels"]["trace_id"]
    if trace != "00000000000000ff":
        sys.exit("an exemplar has the trace id %s" % trace)


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def start_gpud(processes, binaries, folder, port, *options, **environment):
    os.mkdir(folder, 0o755)
    gpud = subprocess.Popen(
        [os.path.join(binaries, "gpud"), *options, "--runtime-dir", folder, "--cache-dir", os.path.join(folder, "cache"),
         "--set", "metrics.listen=127.0.0.1:%d" % port], env={**os.environ, **environment},
        stderr=open(os.path.join(folder, "gpud.log"), "wb"))
    processes.append(gpud)
    until("gpud is ready", lambda: gpud.poll() is not None or get(port, "/readyz")[0] == 200)
    if gpud.poll() is not None:
        sys.exit("gpud has ended: see %s" % folder)


def start_prometheus(folder, source, port, targets):
    shutil.copy(os.path.join(source, "packaging/monitoring/gpud-alerts.yml"), os.path.join(folder, "alerts.yml"))
    with open(os.path.join(folder, "prometheus.yml"), "w", encoding="utf-8") as f:
        f.write(PROMETHEUS_YML % ", ".join('"127.0.0.1:%d"' % target for target in targets))
    return subprocess.Popen(
        ["prometheus", "--config.file=" + os.path.join(folder, "prometheus.yml"),
         "--storage.tsdb.path=" + os.path.join(folder, "data"), "--web.listen-address=127.0.0.1:%d" % port,
         "--enable-feature=exemplar-storage"],
        stderr=open(os.path.join(folder, "prometheus.log"), "wb"))


def run(binaries, source, folder, double):
    gpus = os.path.exists(os.path.join(double, "libnvidia-ml.so.1"))
    targets, port = [free_port() for _ in range(2 if gpus else 1)], free_port()
    processes = []
    try:
        start_gpud(processes, binaries, os.path.join(folder, "sim"), targets[0], "--backend", "sim", "--backend-options",
                   "speed=0,devices=2")
        if gpus:
            start_gpud(processes, binaries, os.path.join(folder, "cuda"), targets[1], "--backend", "cuda",
                       LD_LIBRARY_PATH=os.path.abspath(double), CUDA_FAKE="devices=1;delay_us=0",
                       CUDA_FAKE_NVML="devices=1")
        daemons = list(processes)
        processes.append(start_prometheus(folder, source, port, targets))
        subprocess.run([os.path.join(binaries, "metrics_load"), "ipc://%s/sim/gpud.sock" % folder], check=True)
        for target in targets:
            check_text(target)
        until("Prometheus has data", lambda: get(port, "/-/ready")[0] == 200 and
              api(port, "query", query="gpud_ready == 1")["result"])
        check_queries(port, source, gpus)
        check_exemplar(port)
        check_firing(port, daemons)
    finally:
        for process in processes:
            end(process)


def main():
    binaries, source, double = sys.argv[1:]
    for program in "prometheus", "promtool":
        if shutil.which(program) is None:
            print("skipped: there is no %s (apt-get install prometheus)" % program)
            return SKIPPED
    rules = os.path.join(source, "packaging/monitoring/gpud-alerts.yml")
    subprocess.run(["promtool", "check", "rules", rules], check=True, stdout=subprocess.DEVNULL)
    folder = tempfile.mkdtemp(prefix="gpud-prometheus-")
    run(binaries, source, folder, double)
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
