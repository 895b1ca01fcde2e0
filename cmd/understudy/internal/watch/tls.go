package watch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/internal/net/xnet"
)

type TLS struct {
	// Always means that even connections to loopback use TLS.
	Always   bool
	Insecure bool
	// CA is a file with root certificates. By default, we use the system's.
	CA string
	// Certificate and Key are the files of the client's certificate, in case servers require one.
	Certificate, Key string
}

func (t TLS) isConfigured() bool { return t.Always || t.CA != "" || t.Certificate != "" || t.Key != "" }

func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		roots, err := xnet.Roots(t.CA)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		config.RootCAs = roots
	}
	if t.Certificate != "" || t.Key != "" {
		pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, fmt.Errorf("a client's certificate needs both --tls-cert and --tls-key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (t TLS) credentials() (credentials.TransportCredentials, error) {
	if t.Insecure && t.isConfigured() {
		return nil, errors.New("--insecure is given together with another TLS option, want one of them")
	}
	if t.Insecure {
		return insecure.NewCredentials(), nil
	}
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	// A proxy on loopback may forward connections to other machines.
	if t.isConfigured() || os.Getenv("HTTPS_PROXY") != "" || os.Getenv("https_proxy") != "" {
		return credentials.NewTLS(config), nil
	}
	return tlsUnlessLocal{credentials.NewTLS(config)}, nil
}

// tlsUnlessLocal uses TLS unless both ends are on this machine. We can only tell during the
// handshake, because that's when we get to know the remote address.
type tlsUnlessLocal struct {
	credentials.TransportCredentials
}

func (u tlsUnlessLocal) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if remote := conn.RemoteAddr(); remote.Network() == "unix" || xnet.IsLoopback(remote.String()) {
		return insecure.NewCredentials().ClientHandshake(ctx, authority, conn)
	}
	return u.TransportCredentials.ClientHandshake(ctx, authority, conn)
}

func (u tlsUnlessLocal) Clone() credentials.TransportCredentials {
	return tlsUnlessLocal{u.TransportCredentials.Clone()}
}
