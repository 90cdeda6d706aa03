/* What a client's TLS is made of. */
#ifndef CLIENT_WIRE_TLS_NAMES_H
#define CLIENT_WIRE_TLS_NAMES_H

#define TLS_PATH      1024 /* bytes */
#define TLS_NAME      256
#define TLS_SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"

/* Files in PEM; "": none, for the CA the system's. */
struct tls_names {
    char ca[TLS_PATH];
    char cert[TLS_PATH]; /* the client's own, if the daemon wants one */
    char key[TLS_PATH];
    char server[TLS_NAME]; /* the name in the daemon's certificate: DNS, IP address or CN */
};

#endif
