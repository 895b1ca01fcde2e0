package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/internal/net/xnet"
)

// TLS names the PEM files of a server's certificate. They are read for each connection, so that a
// renewed certificate takes effect without a restart. While the files are invalid, their last valid
// content is used.
type TLS struct {
	Certificate, Key string
	// ClientCA, if not empty, holds the root certificates for client certificates, which are then
	// required (mTLS).
	ClientCA string
}

// reload reads the files for each connection. It logs each problem only once.
func (t TLS) reload(lastGood *tls.Config, log *slog.Logger) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	var mu sync.Mutex
	var problem string
	return func(*tls.ClientHelloInfo) (*tls.Config, error) {
		mu.Lock()
		defer mu.Unlock()
		found, err := t.load()
		switch {
		case err == nil:
			lastGood, problem = found, ""
		case err.Error() != problem:
			problem = err.Error()
			log.Error("TLS files rejected, the last good ones are still used", "error", problem)
		}
		return lastGood, nil
	}
}

func (t TLS) load() (*tls.Config, error) {
	if t.Certificate == "" || t.Key == "" {
		return nil, errors.New("TLS needs both a certificate (--tls-cert) and its key (--tls-key)")
	}
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	if t.ClientCA == "" {
		return config, nil
	}
	roots, err := xnet.Roots(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, roots
	return config, nil
}

// loggingCredentials logs failed handshakes. Otherwise, only the client would log them, and the
// server's operator may have no access to the client's log.
type loggingCredentials struct {
	credentials.TransportCredentials
	log *slog.Logger
}

func (w loggingCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := w.TransportCredentials.ServerHandshake(conn)
	if err != nil && !errors.Is(err, io.EOF) { // EOF is, for example, a health probe of the port
		w.log.Warn("TLS handshake failed", "client", conn.RemoteAddr().String(), "error", err.Error())
	}
	return secure, info, err
}

func (o Options) credentials() (credentials.TransportCredentials, error) {
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		return nil, fmt.Errorf("address %q: want host:port, as in %s", o.Listen, DefaultListen)
	}
	if o.TLS != (TLS{}) {
		config, err := o.TLS.load()
		if err != nil {
			return nil, err
		}
		return loggingCredentials{credentials.NewTLS(&tls.Config{GetConfigForClient: o.TLS.reload(config, o.Log)}), o.Log}, nil
	}
	if !o.Insecure && !xnet.IsLoopback(o.Listen) {
		return nil, fmt.Errorf("address %s is not on loopback, so anyone who reaches it could read every endpoint: want TLS (--tls-cert, --tls-key), or --insecure", o.Listen)
	}
	return insecure.NewCredentials(), nil
}
