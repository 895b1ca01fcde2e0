package eds

import (
	"fmt"
	"net/url"
	"time"

	"google.golang.org/grpc/keepalive"
)

// The parameters of a target that set keepalive.
const (
	keepaliveTimeParameter    = "keepaliveTime"
	keepaliveTimeoutParameter = "keepaliveTimeout"
)

// minKeepaliveTime is the shortest that gRPC takes; it would round up without a word.
const minKeepaliveTime = 10 * time.Second

// WithKeepalive sets how soon a management server that was cut off, or hangs, is found
// out about: it is pinged after time without a word from it, and given up if nothing
// comes within timeout. The default is 5 minutes and 20 s, which every server allows; a
// server has to allow more frequent pings (keepalive.EnforcementPolicy), or ends the
// connection. understudy serve allows one every 10 s. The parameters keepaliveTime and
// keepaliveTimeout of the target go before this.
func WithKeepalive(time, timeout time.Duration) Option {
	return func(o *options) { o.keepalive = &keepalive.ClientParameters{Time: time, Timeout: timeout} }
}

// checkKeepalive says what is wrong with p; nil and zero are the default.
func checkKeepalive(p *keepalive.ClientParameters) error {
	switch {
	case p == nil:
		return nil
	case p.Time != 0 && p.Time < minKeepaliveTime:
		return fmt.Errorf("a keepalive time of %v, want at least %v", p.Time, minKeepaliveTime)
	case p.Timeout < 0:
		return fmt.Errorf("a keepalive timeout of %v, want more than 0", p.Timeout)
	}
	return nil
}

// onlyKeepalive reports whether a target's query has nothing but what keepaliveOf reads.
func onlyKeepalive(rawQuery string) bool {
	query, err := url.ParseQuery(rawQuery)
	for name, values := range query {
		if name != keepaliveTimeParameter && name != keepaliveTimeoutParameter || len(values) != 1 {
			return false
		}
	}
	return err == nil
}

// keepaliveOf returns the keepalive of a target with this query: its parameters, and
// for what it does not have that of the option.
func keepaliveOf(query url.Values, option *keepalive.ClientParameters) (keepalive.ClientParameters, error) {
	var p keepalive.ClientParameters
	if option != nil {
		p = *option
	}
	for name, field := range map[string]*time.Duration{keepaliveTimeParameter: &p.Time, keepaliveTimeoutParameter: &p.Timeout} {
		if !query.Has(name) {
			continue
		}
		text := query.Get(name)
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return p, fmt.Errorf("%s is %q, want a duration such as 20s", name, text)
		}
		*field = d
	}
	return p, checkKeepalive(&p)
}
