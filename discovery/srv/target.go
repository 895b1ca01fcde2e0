package srv

import (
	"fmt"
	"net"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const targetForm = "srv:///checkout.example.com, or srv:///_service._proto.example.com"

type parsedTarget struct {
	server string // host:port of the DNS server, or "" for that of the system
	record string // full name of the SRV records, such as _grpc._tcp.checkout.example.com
	host   string // name that certificates are verified against
}

func parse(target resolver.Target) (parsedTarget, error) {
	u := target.URL
	invalid := func(format string, args ...any) (parsedTarget, error) {
		return parsedTarget{}, fmt.Errorf("target %s %s; want %s", printable.Quote(u.Redacted()), fmt.Sprintf(format, args...), targetForm)
	}
	name := strings.TrimPrefix(u.Path, "/")
	switch {
	case u.Opaque != "":
		return invalid("lacks the slashes after the scheme")
	case u.User != nil:
		return invalid("has user information")
	case u.Fragment != "":
		return invalid("has a fragment")
	case name == "":
		return invalid("names no service")
	case strings.ContainsAny(name, ":[]"):
		return invalid("has a port or an address: the ports come from the records")
	}
	p := parsedTarget{record: name, host: strings.TrimSuffix(name, ".")}
	if strings.HasPrefix(name, "_") {
		labels := strings.SplitN(p.host, ".", 3)
		if len(labels) < 3 || !strings.HasPrefix(labels[1], "_") {
			return invalid("names no service and protocol")
		}
		p.host = labels[2]
	} else {
		p.record = "_grpc._tcp." + name
	}
	if problem := nameProblem(p.record); problem != "" {
		return invalid("%s", problem)
	}
	if u.Host == "" {
		return p, nil
	}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		return invalid("names a port without a name server")
	}
	if port == "" {
		port = "53"
	}
	p.server = net.JoinHostPort(host, port)
	return p, nil
}

// nameProblem returns the reason why name is not a valid DNS name (RFC 1035, 2.3.4), or "" if it is
// valid.
func nameProblem(name string) string {
	const maxName, maxLabel = 253, 63
	name = strings.TrimSuffix(name, ".")
	if len(name) > maxName {
		return fmt.Sprintf("results in a name of %d bytes, more than %d", len(name), maxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case label == "":
			return "has an empty label"
		case len(label) > maxLabel:
			return fmt.Sprintf("has a label of %d bytes, more than %d", len(label), maxLabel)
		case strings.ContainsFunc(label, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/\,@"'`, r) }):
			return fmt.Sprintf("has the label %q, which is not allowed in a host name", label)
		}
	}
	return ""
}
