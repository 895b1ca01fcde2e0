// Package secure decides which connections to and from a management server may go
// without TLS, and reads the roots of the others. Clients and "understudy serve" share
// it, so that their defaults agree.
package xnet

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// IsLoopback reports whether address, host:port, is on this machine alone.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Roots returns the certificates in the PEM file at path.
func Roots(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", path)
	}
	return pool, nil
}
