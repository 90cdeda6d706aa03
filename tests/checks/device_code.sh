#!/bin/sh
# For which GPUs a build makes device code: what GPUD_CUDA_ARCHS asks for, as far as its nvcc knows
# them. Stands nvcc and nvidia-smi in by scripts. usage: device_code.sh SOURCE_DIR
set -eu
source=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/nvcc" <<'END'
#!/bin/sh
printf 'sm_75\nsm_80\nsm_86\nsm_89\nsm_90\n'
END
cat >"$dir/nvidia-smi" <<'END'
#!/bin/sh
cat "$(dirname "$0")/gpus"
END
chmod +x "$dir/nvcc" "$dir/nvidia-smi"
cat >"$dir/archs.cmake" <<END
set(GPUD_NVCC $dir/nvcc)
set(GPUD_NVIDIA_SMI $dir/nvidia-smi)
include($source/cmake/device_code.cmake)
file(WRITE $dir/found "\${GPUD_DEVICE_ARCHS}\n\${GPUD_NVCC_ARCHS}\n")
END

bad=0
# expect WANTED GPUS ARCHS: what nvidia-smi says of GPUs, and the list that comes of it.
expect() {
    printf '%b' "$2" >"$dir/gpus"
    cmake -DGPUD_CUDA=AUTO "-DGPUD_CUDA_ARCHS=$1" -P "$dir/archs.cmake" >"$dir/log" 2>&1 || true
    got=$(sed -n 1p "$dir/found" 2>/dev/null || true)
    if [ "$got" != "$3" ]; then
        echo "GPUD_CUDA_ARCHS=$1: \"$got\", not \"$3\""
        cat "$dir/log"
        bad=1
    fi
    rm -f "$dir/found"
}

expect native '' ''
expect native '9.0\n' '90'
expect native '9.0\n8.6\n9.0\n' '86;90'
expect native '6.1\n12.0\n8.0\n' '80'
expect native 'NVIDIA-SMI has failed\n' ''
expect all '9.0\n' '75;80;86;89;90'
expect none '9.0\n' ''
expect '80;86' '9.0\n' '80;86'
expect everything '' ''
grep -q 'native, all, none or a list' "$dir/log" || {
    echo "GPUD_CUDA_ARCHS=everything is not refused"
    bad=1
}
exit $bad
