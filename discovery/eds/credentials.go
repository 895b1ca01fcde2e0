package eds

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/internal/net/xnet"
)

// systemTLS verifies the server with the system's root certificates. It's a variable because
// channels only share a connection if their credentials are equal.
var systemTLS = credentials.NewTLS(nil)

// credentialsFor returns the credentials for a management server. Its uri may come from the target
// or from the bootstrap.
func (o *options) credentialsFor(uri string, boot *bootstrap) (credentials.TransportCredentials, error) {
	if o.credentials != nil {
		return o.credentials, nil
	}
	if server := boot.find(uri); server != nil {
		return server.credentials()
	}
	if xnet.IsLoopback(strings.TrimPrefix(uri, dnsPrefix)) {
		return insecure.NewCredentials(), nil
	}
	return systemTLS, nil
}

// tlsFiles is the config of channel_creds with the type "tls".
type tlsFiles struct {
	CA          string `json:"ca_certificate_file"` // if empty, we use the system's roots
	Certificate string `json:"certificate_file"`
	PrivateKey  string `json:"private_key_file"`
}

func (f tlsFiles) load() (*tls.Config, error) {
	var config tls.Config
	if f.CA != "" {
		roots, err := xnet.Roots(f.CA)
		if err != nil {
			return nil, fmt.Errorf("ca_certificate_file: %w", err)
		}
		config.RootCAs = roots
	}
	if f.Certificate != "" || f.PrivateKey != "" {
		pair, err := tls.LoadX509KeyPair(f.Certificate, f.PrivateKey)
		if err != nil {
			return nil, fmt.Errorf("certificate_file and private_key_file: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &config, nil
}

// fileCredentials reads its files again for each connection, so that renewed certificates take
// effect.
type fileCredentials struct {
	credentials.TransportCredentials
	files tlsFiles
}

func (c fileCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := c.files.load()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

func (c fileCredentials) Clone() credentials.TransportCredentials { return c }
