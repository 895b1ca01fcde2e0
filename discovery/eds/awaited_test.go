package eds

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/envoy/adsclient"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

// If a management server accepts connections but never answers, the errors of calls must contain
// its address.
func TestCallErrorNamesSilentServer(t *testing.T) {
	for query, want := range map[string]string{
		"":          "eds: no answer yet: waiting for management server dns:///192.0.2.1:1",
		"?cds=true": "no answer yet: waiting for ",
	} {
		synctest.Test(t, func(t *testing.T) {
			listener := bufconn.Listen(1 << 16)
			server := adstest.Serve(listener, (*adstest.Stream).Drain)
			defer server.Stop()
			network := &adsclient.Network{Dial: func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }}
			builder := given.Builder(Scheme, given.Sources(WithInsecure(), discovery.OwnOption(func(o *adsclient.Options) { o.Network = network })))
			cc, err := grpc.NewClient("eds://192.0.2.1:1/c"+query, grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer cc.Close()
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			_, err = healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{})
			if status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "while waiting for endpoints: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: call error = %v, want %s", query, err, want)
			}
		})
	}
}
