package printable

import (
	"slices"
	"strings"
)

// gRPC's connection errors begin with dialing or connection. In the error of a call, unavailable comes
// before that.
const (
	unavailable = "rpc error: code = Unavailable desc = "
	dialing     = `connection error: desc = "transport: Error while dialing: `
	connection  = `connection error: desc = "`
)

// Brief shortens the text of a connection error:
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

// hints are explanations that Brief appends to errors with these ends.
var hints = map[string]string{
	"no such host":              ": the name may not exist",
	"tls: certificate required": ": the server wants a client certificate",
	"tls: bad certificate":      ": the server does not accept the client's certificate, or wants one",
	"tls: first record does not look like a TLS handshake": ": the server may not speak TLS",
}

// If a server accepts a connection and does not respond, gRPC's error begins with a key of handshakes
// and ends with an element of timeouts.
var (
	handshakes = map[string]string{
		"error reading server preface: ":               "does not answer",
		"transport: authentication handshake failed: ": "does not answer the TLS handshake",
	}
	timeouts = []string{"i/o timeout", "context deadline exceeded", "use of closed network connection"} // the last if gRPC has closed it
)

// briefTimeout shortens errors such as this one:
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
