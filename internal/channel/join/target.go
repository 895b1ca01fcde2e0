package join

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Settings returns the authority that a channel to the target would have, along with the policy
// settings in the target's parameters.
func Settings(target string) (authority string, settings options.Settings, err error) {
	b, parsed, err := parseTarget(target, options.Program{})
	if err != nil {
		return "", settings, err
	}
	mechanisms, channelOptions, _, err := b.Read(discovery.Target{Target: parsed, Channel: parsed})
	for _, m := range mechanisms {
		if channelOptions.Prefer == "" && channelOptions.Zone+channelOptions.Node != "" {
			channelOptions.Prefer = m.Prefer
		}
	}
	return b.OverrideAuthority(parsed), channelOptions.Settings, b.Prefixed(err, parsed)
}

// WithOptions adds parameters to a target. Each one has the form NAME=VALUE.
func WithOptions(target string, pairs []string) (string, error) {
	for _, option := range pairs {
		name, value, found := strings.Cut(option, "=")
		if !found || name == "" {
			return "", fmt.Errorf("--option %.100q: want NAME=VALUE, such as failoverTimeout=5s", option)
		}
		separator := "?"
		if strings.Contains(target, "?") {
			separator = "&"
		}
		target += separator + url.QueryEscape(name) + "=" + url.QueryEscape(value)
	}
	return target, nil
}

func parseTarget(target string, program options.Program) (*builder, resolver.Target, error) {
	if scheme, _, _ := strings.Cut(target, ":"); !slices.Contains(options.Schemes(), strings.ToLower(scheme)) {
		target = "failover:///" + target
	}
	u, err := url.Parse(xnet.EscapeZones(target))
	if err != nil {
		return nil, resolver.Target{}, fmt.Errorf("target %s does not parse; want a list such as us-east.example.com:443,eu-west.example.com:443, or one of the schemes %s", printable.Quote(printable.HideText(target)), strings.Join(options.Schemes(), ", "))
	}
	b, ok := options.BuilderFor(u.Scheme, program).(*builder)
	if !ok {
		return nil, resolver.Target{}, fmt.Errorf("target %s has the unknown scheme %s, want one of %s", printable.Quote(printable.HideText(target)), printable.Quote(u.Scheme), strings.Join(options.Schemes(), ", "))
	}
	return b, resolver.Target{URL: *u}, nil
}
