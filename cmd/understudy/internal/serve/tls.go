package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/internal/secure"
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
	roots, err := secure.Roots(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, roots
	return config, nil
}

// watched are credentials that log the handshakes that fail: the client's own log
// may be far away.
type watched struct {
	credentials.TransportCredentials
	log *slog.Logger
}

// ServerHandshake makes one connection secure.
func (w watched) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := w.TransportCredentials.ServerHandshake(conn)
	switch {
	case errors.Is(err, io.EOF): // who only looks whether the port is open
		w.log.Debug("connection closed before the TLS handshake", "client", conn.RemoteAddr().String())
	case err != nil:
		w.log.Warn("TLS handshake failed", "client", conn.RemoteAddr().String(), "error", err.Error())
	}
	return secure, info, err
}

// Clone returns a copy.
func (w watched) Clone() credentials.TransportCredentials {
	return watched{w.TransportCredentials.Clone(), w.log}
}

// credentials returns those that Options ask for.
func (o Options) credentials() (credentials.TransportCredentials, error) {
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		return nil, fmt.Errorf("address %q: want host:port, as in %s", o.Listen, DefaultListen)
	}
	if o.TLS != (TLS{}) {
		config, err := o.TLS.config()
		if err != nil {
			return nil, err
		}
		return watched{credentials.NewTLS(config), o.Log}, nil
	}
	if !o.Insecure && !secure.IsLoopback(o.Listen) {
		return nil, fmt.Errorf("address %s is not on loopback, and whoever reaches it would read every endpoint: want TLS (--tls-cert, --tls-key), or --insecure", o.Listen)
	}
	return insecure.NewCredentials(), nil
}
