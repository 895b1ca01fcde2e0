package printable

import (
	"slices"
	"strings"
)

// gRPC's connection errors begin with dialing or connection. If it's the error of a call,
// unavailable comes first.
const (
	unavailable = "rpc error: code = Unavailable desc = "
	dialing     = `connection error: desc = "transport: Error while dialing: `
	connection  = `connection error: desc = "`
)

// Brief shortens connection errors:
//
//	rpc error: code = Unavailable desc = connection error: desc = "transport: Error while
//	dialing: dial tcp 10.0.0.1:443: connect: connection refused"
//	->  connection refused by 10.0.0.1:443
func Brief(text string) string {
	if rest, ok := strings.CutPrefix(text, unavailable); ok && strings.HasPrefix(rest, connection) {
		text = rest
	}
	for _, prefix := range []string{dialing, connection} {
		if rest, ok := strings.CutPrefix(text, prefix); ok && strings.HasSuffix(rest, `"`) {
			text = strings.TrimSuffix(rest, `"`)
			break
		}
	}
	const refused = ": connect: connection refused"
	if dial, ok := strings.CutSuffix(text, refused); ok && strings.HasPrefix(dial, "dial ") {
		text = "connection refused by " + dial[strings.LastIndex(dial, " ")+1:]
	}
	for end, hint := range hints {
		if strings.HasSuffix(text, end) {
			return text + hint
		}
	}
	return briefTimeout(text)
}

// Brief appends these to errors with the given endings.
var hints = map[string]string{
	"no such host":              ": the name may not exist",
	"tls: certificate required": ": the server wants a client certificate",
	"tls: bad certificate":      ": the server does not accept the client's certificate, or wants one",
	"tls: first record does not look like a TLS handshake": ": the server may not speak TLS",
}

// If a server accepts a connection but then doesn't respond, gRPC's error begins with one of
// handshakes and ends with one of timeouts.
var (
	handshakes = map[string]string{
		"error reading server preface: ":               "does not answer",
		"transport: authentication handshake failed: ": "does not answer the TLS handshake",
	}
	timeouts = []string{"i/o timeout", "context deadline exceeded", "use of closed network connection"} // the last one means that gRPC gave up and closed the connection
)

// briefTimeout shortens errors like this:
//
//	error reading server preface: read tcp 10.0.0.9:5->10.0.0.1:443: i/o timeout
//	->  10.0.0.1:443 accepts connections and does not answer
func briefTimeout(text string) string {
	for prefix, failure := range handshakes {
		rest, ok := strings.CutPrefix(text, prefix)
		if !ok || !slices.ContainsFunc(timeouts, func(t string) bool { return strings.HasSuffix(rest, t) }) {
			continue
		}
		server := "the server"
		if _, remote, ok := strings.Cut(rest, "->"); ok {
			if i := strings.Index(remote, ": "); i > 0 {
				server = remote[:i]
			}
		}
		return server + " accepts connections and " + failure
	}
	return text
}
