// Package brief shortens what gRPC and the operating system say of connections.
package brief

import "strings"

// What gRPC says of an attempt to connect begins with the second or the third of these,
// and where that ended a call with the first before it.
const (
	unavailable = "rpc error: code = Unavailable desc = "
	dialling    = `connection error: desc = "transport: Error while dialing: `
	connection  = `connection error: desc = "`
)

// Text returns the text of an error without what is said elsewhere, or says nothing:
//
//	rpc error: code = Unavailable desc = connection error: desc = "transport: Error while
//	dialing: dial tcp 10.0.0.1:443: connect: connection refused"
//	->  connection refused by 10.0.0.1:443
func Text(text string) string {
	if rest, ok := strings.CutPrefix(text, unavailable); ok && strings.HasPrefix(rest, connection) {
		text = rest
	}
	for _, prefix := range []string{dialling, connection} {
		if rest, ok := strings.CutPrefix(text, prefix); ok && strings.HasSuffix(rest, `"`) {
			text = strings.TrimSuffix(rest, `"`)
			break
		}
	}
	const refused = ": connect: connection refused"
	if dial, ok := strings.CutSuffix(text, refused); ok && strings.HasPrefix(dial, "dial ") {
		text = "connection refused by " + dial[strings.LastIndex(dial, " ")+1:]
	}
	return text
}
