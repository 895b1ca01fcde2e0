// Package testcert creates certificates.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

type Authority struct {
	t      *testing.T
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	dir    string
	serial int64
}

type Pair struct{ Certificate, Key string }

func New(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{t: t, key: newKey(t), dir: t.TempDir()}
	a.cert = &x509.Certificate{
		Subject:               pkix.Name{CommonName: "test authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	a.cert = a.sign(a.cert, a.key, "ca")
	return a
}

func (a *Authority) File() string { return filepath.Join(a.dir, "ca.pem") }

func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Pair creates a certificate and key for a server or client with these DNS names or IP addresses.
// It overwrites any earlier pair with the same file name.
func (a *Authority) Pair(file string, names ...string) Pair {
	a.t.Helper()
	cert := &x509.Certificate{
		Subject:     pkix.Name{CommonName: file},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else {
			cert.DNSNames = append(cert.DNSNames, name)
		}
	}
	key := newKey(a.t)
	a.sign(cert, key, file)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(file+".key", "PRIVATE KEY", der)
	return Pair{filepath.Join(a.dir, file+".pem"), filepath.Join(a.dir, file+".key")}
}

func (p Pair) Load(t *testing.T) tls.Certificate {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(p.Certificate, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func (a *Authority) sign(cert *x509.Certificate, key *ecdsa.PrivateKey, file string) *x509.Certificate {
	a.t.Helper()
	a.serial++
	cert.SerialNumber = big.NewInt(a.serial)
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(file+".pem", "CERTIFICATE", der)
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed
}

func (a *Authority) write(file, kind string, der []byte) {
	a.t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(filepath.Join(a.dir, file), text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
