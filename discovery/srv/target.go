package srv

import (
	"cmp"
	"fmt"
	"net"
	"regexp"
	"strings"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const targetForm = "srv:///checkout.example.com, or srv:///_service._proto.example.com"

// dnsName matches one or more labels, each followed by a dot (RFC 1035, section 2.3.4).
var dnsName = regexp.MustCompile(`^([^.\x00-\x20\x7f-\x{10ffff}/\\,@"']{1,63}\.)+$`)

// parse returns the full name of the SRV records, e.g. _grpc._tcp.checkout.example.com, and the name
// that certificates are verified against. server is the host:port of the DNS server, or "" for the
// system's.
func parse(target resolver.Target) (record, host, server string, err error) {
	u := target.URL
	invalid := func(format string, args ...any) (string, string, string, error) {
		return "", "", "", fmt.Errorf("target %s %s; want %s", printable.Quote(u.Redacted()), fmt.Sprintf(format, args...), targetForm)
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
	record, host = name, strings.TrimSuffix(name, ".")
	if strings.HasPrefix(name, "_") {
		labels := strings.SplitN(host, ".", 3)
		if len(labels) < 3 || !strings.HasPrefix(labels[1], "_") {
			return invalid("names no service and protocol")
		}
		host = labels[2]
	} else {
		record = "_grpc._tcp." + name
	}
	if !dnsName.MatchString(strings.TrimSuffix(record, ".")+".") || len(record) > 254 {
		return invalid("results in the name %s, which is not a DNS name", printable.Quote(record))
	}
	if u.Host == "" {
		return record, host, "", nil
	}
	if u.Hostname() == "" {
		return invalid("names a port without a name server")
	}
	return record, host, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "53")), nil
}
