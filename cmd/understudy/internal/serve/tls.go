package serve

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS are the PEM files of a server's certificate. They are read anew for each
// connection, so that a renewed certificate is used without a restart.
type TLS struct {
	// Certificate and Key are the server's own.
	Certificate, Key string
	// ClientCA, if any, are the roots of the certificates that clients must show
	// (mTLS).
	ClientCA string
}

// config returns the configuration, after a look at the files.
func (t TLS) config() (*tls.Config, error) {
	if t.Certificate == "" || t.Key == "" {
		return nil, errors.New("TLS needs both a certificate (--tls-cert) and its key (--tls-key)")
	}
	if _, err := t.load(); err != nil {
		return nil, err
	}
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.load() }}, nil
}

func (t TLS) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	if t.ClientCA == "" {
		return config, nil
	}
	pem, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("client CA: %s holds no certificate in PEM", t.ClientCA)
	}
	return config, nil
}
