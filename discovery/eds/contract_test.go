package eds

import (
	"context"
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/sourcetest"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

func TestSourceContract(t *testing.T) {
	for about, isUnreachable := range map[string]bool{"well": false, "lost": true} {
		t.Run(about, func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) discovery.Source {
				listener := bufconn.Listen(1 << 16)
				server := adstest.Serve(listener, serveOnce)
				t.Cleanup(server.Stop)
				s := source{uris: []string{dnsPrefix + "192.0.2.1:1"}, cluster: "c", options: options{credentials: insecure.NewCredentials()}}
				s.network = &adsclient.Network{Dial: func(ctx context.Context, _ string) (net.Conn, error) {
					if isUnreachable {
						return nil, errors.New("connection refused")
					}
					return listener.DialContext(ctx)
				}}
				return s
			})
		})
	}
}
