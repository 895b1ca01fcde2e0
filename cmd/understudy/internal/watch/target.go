package watch

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/discovery/kubernetes" // registers Kubernetes targets
	"github.com/understudy-lb/understudy/internal/channel/join"
	"github.com/understudy-lb/understudy/internal/config/options"
)

type Dial struct {
	Options       []string // NAME=VALUE, as in the query of a target
	TLS           TLS
	XDSInsecure   bool          // no TLS for the management server
	ServiceConfig string        // JSON
	KeepAlive     time.Duration // interval of keepalive pings, 0 for none
}

func isPage(target string) bool {
	scheme, _, found := strings.Cut(target, "://")
	return found && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

func failoverTarget(target string) string {
	scheme, _, found := strings.Cut(target, ":")
	if found && slices.Contains(options.Schemes(), strings.ToLower(scheme)) {
		return target
	}
	return "failover:///" + target
}

func (d Dial) dial(target string) (*grpc.ClientConn, error) {
	target, err := join.WithOptions(failoverTarget(target), d.Options)
	if err != nil {
		return nil, err
	}
	creds, err := d.TLS.credentials()
	if err != nil {
		return nil, err
	}
	opts := understudy.Options{ServiceConfig: d.ServiceConfig}
	if d.XDSInsecure {
		opts.Sources = append(opts.Sources, eds.WithInsecure())
	}
	if d.KeepAlive != 0 {
		opts.Keepalive = keepalive.ClientParameters{Time: d.KeepAlive, Timeout: 5 * time.Second, PermitWithoutStream: true}
	}
	return understudy.NewClient(target, opts,
		grpc.WithTransportCredentials(creds),
		grpc.WithIdleTimeout(0), // don't go idle just because there are no calls
		grpc.WithUserAgent("understudy-watch"),
	)
}
