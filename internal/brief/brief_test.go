package brief

import "testing"

func TestText(t *testing.T) {
	for given, want := range map[string]string{
		`rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.1:443: connect: connection refused"`: "connection refused by 10.0.0.1:443",
		`connection error: desc = "transport: Error while dialing: dial tcp [::1]:443: i/o timeout"`:                                                         "dial tcp [::1]:443: i/o timeout",
		`connection error: desc = "transport: authentication handshake failed: EOF"`:                                                                         "transport: authentication handshake failed: EOF",
		"dial unix /run/x: connect: connection refused":                                                                                                      "connection refused by /run/x",
		// What a server says is its own.
		"rpc error: code = Unavailable desc = going away":       "rpc error: code = Unavailable desc = going away",
		"rpc error: code = PermissionDenied desc = who are you": "rpc error: code = PermissionDenied desc = who are you",
		"": "",
	} {
		if got := Text(given); got != want {
			t.Errorf("Text(%s) = %s, want %s", given, got, want)
		}
	}
}
