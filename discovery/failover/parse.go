package failover

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// maxEntries limits the length of a list. Each entry needs a resolver, and with the default timeout
// of 10 s, it already takes more than ten minutes to fail over through 64 of them.
const maxEntries = 64

const targetForm = "failover:///us-east.example.com:443,eu-west.example.com:443"

type listParser struct {
	*discovery.Target
	options
	firstAuthority string
}

// parse returns the discovery mechanisms of all entries in priority order. There's at least one,
// unless it returns an error.
func (l *listParser) parse() ([]discovery.Mechanism, error) {
	text := strings.TrimPrefix(l.URL.EscapedPath(), "/")
	switch {
	case l.URL.User != nil:
		return nil, fmt.Errorf("target has user information; want the form %s", targetForm)
	case l.URL.Host != "":
		return nil, fmt.Errorf("target has a host: %s; want the form %s, with three slashes", printable.Quote(l.URL.Host), targetForm)
	case text == "":
		return nil, fmt.Errorf("target has no entries; want the form %s", targetForm)
	}
	var mechanisms []discovery.Mechanism
	names := make(map[string]bool)
	for i, escaped := range strings.Split(text, ",") {
		found, err := l.parseEntry(escaped)
		if err != nil {
			return nil, fmt.Errorf("entry %d, %s: %w", i+1, printable.Quote(printable.HideText(escaped)), err)
		}
		if i == 0 {
			l.firstAuthority = found[0].Authority
		}
		for _, p := range found {
			if names[p.Name] { // the same entry again
				p.Name = fmt.Sprintf("%s (%d)", p.Name, len(mechanisms)+1)
			}
			names[p.Name] = true
			mechanisms = append(mechanisms, p)
		}
		if len(mechanisms) > maxEntries { // a nested list may have many
			return nil, fmt.Errorf("target has too many entries; want at most %d", maxEntries)
		}
	}
	return mechanisms, nil
}

// parseEntry returns the discovery mechanisms of one entry. If a source hasn't named its mechanism,
// the name is the decoded entry.
func (l *listParser) parseEntry(escaped string) ([]discovery.Mechanism, error) {
	text, err := url.PathUnescape(escaped)
	switch {
	case err != nil:
		return nil, err
	case text == "":
		return nil, errors.New("it is empty; want a target such as us-east.example.com:443")
	case !utf8.ValidString(text):
		return nil, errors.New("it is not valid UTF-8")
	case strings.TrimSpace(text) != text:
		return nil, errors.New("it begins or ends with a space")
	}
	target, builder, err := l.findResolver(text)
	if err != nil {
		return nil, err
	}
	mechanisms, err := l.mechanismsOf(target, builder)
	for i := range mechanisms {
		if mechanisms[i].Name == "" {
			mechanisms[i].Name = printable.HideText(text)
		}
	}
	return mechanisms, err
}

// findResolver parses an entry and finds its resolver. It works like grpc.NewClient, except that
// "://" after an unregistered scheme is an error.
func (o *options) findResolver(text string) (resolver.Target, resolver.Builder, error) {
	var none resolver.Target
	text = xnet.EscapeZones(text)
	u, err := url.Parse(text)
	var builder resolver.Builder
	switch {
	case err != nil:
	case u.Scheme == "xds":
		return none, nil, errors.New(`scheme "xds" is refused: an xds target configures load balancing itself`)
	default:
		builder = cmp.Or(o.resolvers[u.Scheme], resolver.Get(u.Scheme))
	}
	if builder == nil {
		switch hasScheme := strings.Contains(text, "://"); {
		case hasScheme && err == nil:
			return none, nil, fmt.Errorf("no resolver is registered for scheme %s; give one by failover.WithResolvers or register it", printable.Quote(u.Scheme))
		case !hasScheme:
			u, err = url.Parse("dns:///" + text)
		}
		if err != nil {
			return none, nil, errors.New("it is not a target; percent-encode its special characters") // err may contain a password
		}
		builder = cmp.Or(o.resolvers["dns"], resolver.Get("dns"))
	}
	target := resolver.Target{URL: *u}
	if u.Scheme == "dns" && o.resolvers["dns"] == nil {
		_, err = hostPort(target.Endpoint())
	}
	return target, builder, err
}

// hostPort returns endpoint as host:port. As in gRPC's DNS resolver, the port defaults to 443 and
// the host to localhost.
func hostPort(endpoint string) (string, error) {
	if endpoint == "" {
		return "", errors.New("no host is given; want host:port")
	}
	if _, err := netip.ParseAddr(endpoint); err == nil {
		return net.JoinHostPort(endpoint, "443"), nil
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		host, port, err = net.SplitHostPort(endpoint + ":443")
	}
	if err != nil || port == "" || strings.ContainsAny(endpoint, "/@") {
		return "", errors.New("want host:port, or [host]:port for an IPv6 address")
	}
	if n, err := strconv.Atoi(port); (err == nil || errors.Is(err, strconv.ErrRange)) && (n < 1 || n > 65535) {
		return "", fmt.Errorf("it has port %s, which is not from 1 to 65535; want a target such as us-east.example.com:443", printable.Line(port, 20))
	}
	if host == "" {
		host = "localhost"
	}
	return net.JoinHostPort(host, port), nil
}
