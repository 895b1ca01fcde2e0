package watch

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/health" // lets healthCheckConfig work
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/eds"
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
	if found && slices.ContainsFunc(discovery.Registered(), func(b resolver.Builder) bool { return b.Scheme() == strings.ToLower(scheme) }) {
		return target
	}
	return "failover:///" + target
}

// withOptions returns a target with more parameters, each NAME=VALUE.
func withOptions(target string, options []string) (string, error) {
	for _, option := range options {
		name, value, found := strings.Cut(option, "=")
		if !found || name == "" {
			return "", fmt.Errorf("--option %q: want NAME=VALUE, such as failoverTimeout=5s", option)
		}
		separator := "?"
		if strings.Contains(target, "?") {
			separator = "&"
		}
		target += separator + url.QueryEscape(name) + "=" + url.QueryEscape(value)
	}
	return target, nil
}

// dial makes a channel. It fails if the target has mistakes.
func (d Dial) dial(target string) (*grpc.ClientConn, error) {
	target, err := withOptions(ours(target), d.Options)
	if err != nil {
		return nil, err
	}
	creds, err := d.TLS.credentials()
	if err != nil {
		return nil, err
	}
	options := []discovery.Option{discovery.WithServiceConfig(d.ServiceConfig)}
	if d.XDSInsecure {
		options = append(options, eds.WithInsecure())
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("target %q: %w", target, errors.Unwrap(err))
	}
	for _, builder := range discovery.Registered(options...) {
		if v, ok := builder.(*discovery.Builder); ok && v.Scheme() == u.Scheme {
			if err := v.Validate(resolver.Target{URL: *u}); err != nil {
				return nil, err
			}
		}
	}
	return grpc.NewClient(target,
		understudy.With(options...),
		grpc.WithTransportCredentials(creds),
		grpc.WithIdleTimeout(0), // it is watched, calls or not
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: d.keepAlive(), Timeout: 5 * time.Second, PermitWithoutStream: d.KeepAlive > 0}),
		grpc.WithUserAgent("understudy-watch"),
	)
}

func (d Dial) keepAlive() time.Duration {
	if d.KeepAlive > 0 {
		return d.KeepAlive
	}
	return 1<<63 - 1 // gRPC's own "never"
}
