package srv

import (
	"fmt"
	"net"
	"regexp"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const targetForm = "srv:///checkout.example.com, or srv:///_service._proto.example.com"

// dnsName matches a name of labels (RFC 1035, 2.3.4).
var dnsName = regexp.MustCompile(`^([^.\x00-\x20\x7f-\x{10ffff}/\\,@"']{1,63}\.)+$`)

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
	case u.User != nil:
		return invalid("has user information")
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
	if !dnsName.MatchString(strings.TrimSuffix(p.record, ".")+".") || len(p.record) > 254 {
		return invalid("results in the name %s, which is not a DNS name", printable.Quote(p.record))
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
