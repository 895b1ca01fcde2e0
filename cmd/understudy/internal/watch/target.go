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
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/resolving"
)

// Dial configures the channel to a target.
type Dial struct {
	Options       []string // NAME=VALUE, as in the query of a target
	TLS           TLS
	XDSInsecure   bool          // no TLS to the management server
	ServiceConfig string        // in JSON
	KeepAlive     time.Duration // time between pings, or 0 for none
}

func isPage(target string) bool {
	scheme, _, found := strings.Cut(target, "://")
	return found && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// ours returns a target that this module resolves. It wraps any other target, or a list of targets,
// into a failover target with the same query.
func ours(target string) string {
	scheme, _, found := strings.Cut(target, ":")
	if found && slices.Contains(options.Schemes(), strings.ToLower(scheme)) {
		return target
	}
	return "failover:///" + target
}

func (d Dial) dial(target string) (*grpc.ClientConn, error) {
	target, err := resolving.WithOptions(ours(target), d.Options)
	if err != nil {
		return nil, err
	}
	creds, err := d.TLS.credentials()
	if err != nil {
		return nil, err
	}
	given := understudy.Options{ServiceConfig: d.ServiceConfig}
	if d.XDSInsecure {
		given.Sources = append(given.Sources, eds.WithInsecure())
	}
	if d.KeepAlive > 0 {
		given.Keepalive = keepalive.ClientParameters{Time: d.KeepAlive, Timeout: 5 * time.Second, PermitWithoutStream: true}
	}
	return understudy.NewClient(target, given,
		grpc.WithTransportCredentials(creds),
		grpc.WithIdleTimeout(0), // the channel must not become idle, even without calls
		grpc.WithUserAgent("understudy-watch"),
	)
}
