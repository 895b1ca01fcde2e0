// Package target accepts the targets of channels. If there's something wrong with a target, the
// error says what to write instead.
package target

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// targets accepts targets and explains what's wrong with the rest. We never suggest anything that
// we wouldn't accept ourselves:
//
//	a:1,b:2                          accepted as failover:///a:1,b:2
//	failover:///a:1?refresh=5s,b:2   accepted as failover:///a:1%3Frefresh=5s,b:2
//	a,b:2,                           write a:443,b:2
//	dns:///a:1,dns:///b:1            write failover:///dns:///a:1,dns:///b:1
type targets struct {
	builders []options.Builder
	read     bool // also read files that a target names
}

const listPrefix = "failover:///"

// Accept returns a target as a URL that gRPC accepts. A list of hosts becomes a failover target,
// and for any other target, there must be a builder with its scheme. If read is true, Accept also
// reads files that the target names.
func Accept(builders []options.Builder, target string, read bool) (string, error) {
	return targets{builders, read}.accept(target)
}

func (t targets) accept(target string) (string, error) {
	scheme, _, hasScheme := strings.Cut(target, ":")
	switch {
	case xnet.IsHostList(target):
		target = listPrefix + target
	case !hasScheme || !slices.Contains(t.schemes(), strings.ToLower(scheme)):
		return "", t.refuse(target)
	}
	err := t.check(target, t.read)
	if err == nil {
		return xnet.EscapeZones(target), nil
	}
	if literal := literally(target); literal != target && t.check(literal, t.read) == nil {
		return literal, nil
	}
	if advice := t.advice(listPrefix + target); strings.Contains(target, ",") && advice != "" {
		err = fmt.Errorf("%w; for a list, write %s", err, advice)
	}
	return "", err
}

func (t targets) schemes() []string {
	var schemes []string
	for _, b := range t.builders {
		schemes = append(schemes, b.Scheme())
	}
	return schemes
}

func (t targets) check(target string, read bool) error {
	escaped := xnet.EscapeZones(target)
	u, err := url.Parse(escaped)
	if err != nil {
		return fmt.Errorf("target %s does not parse; want %s", shown(target), t.forms())
	}
	i := slices.IndexFunc(t.builders, func(b options.Builder) bool { return b.Scheme() == u.Scheme })
	err = t.builders[i].Check(resolver.Target{URL: *u}, read)
	if err != nil && escaped != target { // show zones as they were given
		err = errors.New(strings.ReplaceAll(err.Error(), "%25", "%"))
	}
	return err
}

func literally(target string) string {
	// gRPC's CanonicalTarget prints paths unescaped and drops the query, so we put everything in
	// the path to get back the exact same characters. In a list, a question mark belongs to an
	// entry. Everywhere else it starts a query and has to stay one, or we'd mistake a misspelled
	// parameter for a part of the name.
	scheme, rest, _ := strings.Cut(target, ":")
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return target
	}
	query := ""
	if !strings.EqualFold(scheme, "failover") {
		rest, query, _ = strings.Cut(rest, "?")
	}
	host, path, _ := strings.Cut(rest, "/")
	u := url.URL{Scheme: scheme, Host: host, Path: "/" + path, RawQuery: query}
	return u.String()
}

func (t targets) refuse(target string) error {
	scheme, rest, hasScheme := strings.Cut(target, ":")
	if !hasScheme || strings.Contains(scheme, ",") {
		scheme, rest = "", ""
	}
	problem := ""
	switch {
	case scheme == "xds":
		return errors.New("target " + shown(target) + " is for grpc-go's xDS stack, which configures load balancing itself; call grpc.NewClient, or write eds://xds.example.com:443/cluster")
	case scheme == "kubernetes", scheme == "k8s":
		return errors.New("target " + shown(target) + ` needs a source that is not imported; write import _ "github.com/understudy-lb/understudy/discovery/kubernetes"`)
	case resolver.Get(scheme) != nil:
		problem = "is for one of gRPC's own resolvers"
	case strings.HasPrefix(rest, "//"):
		return fmt.Errorf("target %s has the unknown scheme %s; want %s", shown(target), printable.Quote(scheme), t.forms())
	case strings.HasPrefix(target, "/"):
		problem = "is a path"
	default:
		problem = problemOf(target)
	}
	if advice := t.advice(mended(target)); advice != "" {
		return fmt.Errorf("target %s %s; write %s", shown(target), problem, advice)
	}
	return fmt.Errorf("target %s %s; want %s", shown(target), problem, t.forms())
}

func (t targets) forms() string {
	return "a list such as us-east.example.com:443,eu-west.example.com:443, or one of the schemes " + strings.Join(t.schemes(), ", ")
}

func shown(target string) string { return printable.Quote(printable.HideText(target)) }

// advice returns "" if we wouldn't accept the target either, or if the user couldn't copy and paste
// it.
func (t targets) advice(target string) string {
	const maxLength = 200
	text := printable.HideText(target)
	if len(text) > maxLength || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return ""
	}
	full := text
	if xnet.IsHostList(text) {
		full = listPrefix + text
	}
	if t.check(full, false) != nil {
		return ""
	}
	return text
}

func mended(target string) string {
	if strings.HasPrefix(target, "/") {
		return "file://" + target
	}
	hosts, query, hasQuery := strings.Cut(target, "?")
	var entries []string
	for entry := range strings.SplitSeq(hosts, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			entries = append(entries, withPort(entry))
		}
	}
	list := strings.Join(entries, ",")
	if hasQuery {
		list += "?" + query
	}
	if xnet.IsHostList(list) {
		return list
	}
	return listPrefix + list
}

func problemOf(list string) string {
	hosts, _, _ := strings.Cut(list, "?")
	for entry := range strings.SplitSeq(hosts, ",") {
		_, port, _ := net.SplitHostPort(entry)
		n, notNumber := strconv.Atoi(port)
		switch {
		case entry == "":
			return "has an empty entry"
		case strings.TrimSpace(entry) != entry:
			return "has a space beside an entry"
		case withPort(entry) != entry:
			return "has no port after " + shown(entry)
		case xnet.IsHostList(entry):
			continue
		case notNumber == nil && (n < 1 || n > 65535):
			return "has port " + printable.Quote(port) + ", which is not from 1 to 65535"
		}
		return "has the entry " + shown(entry) + ", which is not host:port"
	}
	return "" // not reached, because accept takes lists without mistakes
}

func withPort(entry string) string {
	const port = "443"
	ip := entry
	if strings.HasPrefix(ip, "[") {
		ip = strings.TrimSuffix(ip[1:], "]")
	}
	if _, err := netip.ParseAddr(ip); err == nil && !strings.Contains(ip, "]") {
		return net.JoinHostPort(ip, port)
	}
	if host, hasColon := strings.CutSuffix(entry, ":"); host != "" && !strings.ContainsAny(host, ":/@#% ") {
		if hasColon {
			return host + ":" + port
		}
		return entry + ":" + port
	}
	return entry
}
