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

type keyring struct {
	files TLS
	log   *slog.Logger

	mu            sync.Mutex
	lastGood      *tls.Config
	loggedProblem string
}

func newKeyring(files TLS, log *slog.Logger) (*keyring, error) {
	if files.Certificate == "" || files.Key == "" {
		return nil, errors.New("TLS needs both a certificate (--tls-cert) and its key (--tls-key)")
	}
	good, err := files.load()
	if err != nil {
		return nil, err
	}
	return &keyring{files: files, log: log, lastGood: good}, nil
}

// reload reads the files and returns the TLS configuration to use. It logs each problem only once.
func (k *keyring) reload() *tls.Config {
	found, err := k.files.load()
	text := ""
	if err != nil {
		text = err.Error()
	}
	k.mu.Lock()
	if err == nil {
		k.lastGood = found
	}
	good, before := k.lastGood, k.loggedProblem
	k.loggedProblem = text
	k.mu.Unlock()
	switch {
	case text == before:
	case err != nil:
		k.log.Error("TLS files rejected, the last good ones are still used", "error", text)
	default:
		k.log.Info("TLS files no longer rejected")
	}
	return good
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
	switch {
	case errors.Is(err, io.EOF): // for example, a health probe of the port
		w.log.Debug("connection closed before the TLS handshake", "client", conn.RemoteAddr().String())
	case err != nil:
		w.log.Warn("TLS handshake failed", "client", conn.RemoteAddr().String(), "error", err.Error())
	}
	return secure, info, err
}

func (w loggingCredentials) Clone() credentials.TransportCredentials {
	return loggingCredentials{w.TransportCredentials.Clone(), w.log}
}

// credentials returns the credentials and their keyring, which is nil without TLS.
func (o Options) credentials() (credentials.TransportCredentials, *keyring, error) {
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		return nil, nil, fmt.Errorf("address %q: want host:port, as in %s", o.Listen, DefaultListen)
	}
	if o.TLS != (TLS{}) {
		keys, err := newKeyring(o.TLS, o.Log)
		if err != nil {
			return nil, nil, err
		}
		config := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return keys.reload(), nil }}
		return loggingCredentials{credentials.NewTLS(config), o.Log}, keys, nil
	}
	if !o.Insecure && !xnet.IsLoopback(o.Listen) {
		return nil, nil, fmt.Errorf("address %s is not on loopback, so anyone who reaches it could read every endpoint: want TLS (--tls-cert, --tls-key), or --insecure", o.Listen)
	}
	return insecure.NewCredentials(), nil, nil
}
