package failover

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/printable"
)

// maxParts limits the number of entries in a list. Each entry needs a resolver, and with the
// default timeout of 10 s, failing over through 64 entries takes more than ten minutes.
const maxParts = 64

// form is the example of a well-formed target that errors contain.
const form = "failover:///us-east.example.com:443,eu-west.example.com:443"

// refused maps the schemes that cannot be used in a list to the reasons.
var refused = map[string]string{"xds": "an xds target configures load balancing itself"}

type list struct {
	*discovery.Target
	options
	first string
}

// parse returns the discovery mechanisms of all entries in priority order. Unless it returns an
// error, there is at least one.
func (l *list) parse() ([]discovery.Mechanism, error) {
	if err := checkShape(l.URL); err != nil {
		return nil, err
	}
	text := strings.TrimPrefix(l.URL.EscapedPath(), "/")
	if text == "" {
		return nil, fmt.Errorf("target has no parts; want the form %s", form)
	}
	if n := strings.Count(text, ",") + 1; n > maxParts {
		return nil, fmt.Errorf("target has %d parts; want at most %d", n, maxParts)
	}
	var parts []discovery.Mechanism
	taken := make(map[string]bool)
	for i, escaped := range strings.Split(text, ",") {
		found, err := l.parsePart(escaped)
		if err != nil {
			return nil, fmt.Errorf("part %d, %s: %w", i+1, printable.Quote(shown(escaped)), err)
		}
		if i == 0 {
			l.first = found[0].Authority
		}
		for _, p := range found {
			p.Name = uniqueName(p.Name, taken)
			parts = append(parts, p)
		}
	}
	if n := len(parts); n > maxParts {
		return nil, fmt.Errorf("target has %d parts, those within parts counted; want at most %d", n, maxParts)
	}
	return parts, nil
}

// checkShape returns an error unless u consists of a scheme, a path and perhaps a query.
func checkShape(u url.URL) error {
	var what, given string
	switch {
	case u.Opaque != "":
		what, given = "no slashes before its parts", shown(u.Opaque)
	case u.Host != "":
		what, given = "a host", u.Host
	case u.User != nil:
		what, given = "user information", "xxxxx"
	case u.Fragment != "":
		what, given = "a fragment (in a part, # is written %23)", strings.TrimPrefix(printable.HideText("#"+u.Fragment), "#")
	default:
		return nil
	}
	return fmt.Errorf("target has %s: %s; want the form %s, with three slashes", what, printable.Quote(given), form)
}

// parsePart parses one entry. The name of its discovery mechanism is the decoded entry, unless the
// entry's source names its mechanisms itself.
func (l *list) parsePart(escaped string) ([]discovery.Mechanism, error) {
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
	target, inner, err := l.find(text)
	if err != nil {
		return nil, err
	}
	parts, err := l.within(target, inner)
	for i := range parts {
		if parts[i].Name == "" {
			parts[i].Name = printable.HideText(text)
		}
	}
	return parts, err
}

// find parses an entry and finds its resolver, as grpc.NewClient does, with one difference: "://"
// after an unregistered scheme is an error.
func (o *options) find(text string) (resolver.Target, resolver.Builder, error) {
	u, err := url.Parse(text)
	if err == nil {
		if why, ok := refused[u.Scheme]; ok {
			return resolver.Target{}, nil, fmt.Errorf("scheme %q is refused: %s", u.Scheme, why)
		}
		if inner := o.lookup(u.Scheme); inner != nil {
			target := resolver.Target{URL: *u}
			return target, inner, o.checkDNS(target)
		}
	}
	if strings.Contains(text, "://") {
		if err != nil {
			return resolver.Target{}, nil, unread(text, err)
		}
		return resolver.Target{}, nil, fmt.Errorf("no resolver is registered for scheme %s; give one by failover.WithResolvers or register it", printable.Quote(u.Scheme))
	}
	u, err = url.Parse("dns:///" + text)
	if err != nil {
		return resolver.Target{}, nil, unread(text, err)
	}
	inner := o.lookup(u.Scheme)
	if inner == nil {
		return resolver.Target{}, nil, errors.New("no resolver is registered for scheme \"dns\"")
	}
	target := resolver.Target{URL: *u}
	return target, inner, o.checkDNS(target)
}

func (o *options) lookup(scheme string) resolver.Builder {
	if inner := o.own(scheme); inner != nil {
		return inner
	}
	return resolver.Get(scheme)
}

func (o *options) own(scheme string) resolver.Builder {
	for _, inner := range o.resolvers {
		if inner.Scheme() == scheme {
			return inner
		}
	}
	return nil
}

func (o *options) checkDNS(target resolver.Target) error {
	if target.URL.Scheme != "dns" || o.own("dns") != nil {
		return nil
	}
	_, err := hostPort(target.Endpoint())
	return err
}

// hostPort returns endpoint as host:port. Like gRPC's DNS resolver, it uses port 443 and host
// localhost by default.
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
	if err != nil {
		return "", fmt.Errorf("want host:port: %w", cause(err))
	}
	if port == "" {
		return "", errors.New("no port follows the colon; want host:port")
	}
	if host == "" {
		host = "localhost"
	}
	return net.JoinHostPort(host, port), nil
}

// isAddress reports whether the host of endpoint is an IP address, which needs no lookup.
func isAddress(endpoint string) bool {
	address, err := hostPort(endpoint)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddrPort(address)
	return err == nil
}

// uniqueName returns name, followed by a number if it is already taken. It adds the result to
// taken.
func uniqueName(name string, taken map[string]bool) string {
	unique := name
	for i := 2; taken[unique]; i++ {
		unique = fmt.Sprintf("%s (%d)", name, i)
	}
	taken[unique] = true
	return unique
}

func shown(escaped string) string {
	text, err := url.PathUnescape(escaped)
	if err != nil {
		return printable.HideText(escaped)
	}
	if after := printable.HideText(text); after != text {
		return after
	}
	return escaped
}

// unread describes why text cannot be parsed. The description must not contain the text, which may
// contain a password.
func unread(text string, err error) error {
	if strings.Contains(text, "@") {
		return errors.New("it does not parse (why is not shown, because a password may stand in it)")
	}
	return cause(err)
}

// cause returns the reason in an error of package net or net/url, without the text that was parsed.
func cause(err error) error {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		return inURL.Err
	}
	var inAddress *net.AddrError
	if errors.As(err, &inAddress) {
		return errors.New(inAddress.Err)
	}
	return err
}
