package watch

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/discovery/kubernetes" // its targets
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/resolving"
)

// Dial says how a channel is made.
type Dial struct {
	Options       []string // of the channel, NAME=VALUE, as in the target's query
	TLS           TLS
	XDSInsecure   bool          // to the management server
	ServiceConfig string        // in JSON
	KeepAlive     time.Duration // between pings, 0 for none
}

// isPage returns whether a target is the URL of a page.
func isPage(target string) bool {
	scheme, _, found := strings.Cut(target, "://")
	return found && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// ours returns a target of ours: any other, or a list of them, becomes the parts of a
// failover target. The query stays that of the whole.
func ours(target string) string {
	scheme, _, found := strings.Cut(target, ":")
	if found && slices.Contains(options.Schemes(), strings.ToLower(scheme)) {
		return target
	}
	return "failover:///" + target
}

// dial makes a channel. It fails if the target has mistakes.
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
		grpc.WithIdleTimeout(0), // it is watched, calls or not
		grpc.WithUserAgent("understudy-watch"),
	)
}
