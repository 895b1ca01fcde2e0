package printable

import "testing"

func TestBrief(t *testing.T) {
	for given, want := range map[string]string{
		`rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.1:443: connect: connection refused"`: "connection refused by 10.0.0.1:443",
		`connection error: desc = "transport: Error while dialing: dial tcp [::1]:443: i/o timeout"`:                                                         "dial tcp [::1]:443: i/o timeout",
		`connection error: desc = "transport: authentication handshake failed: EOF"`:                                                                         "transport: authentication handshake failed: EOF",
		`connection error: desc = "error reading server preface: read tcp 10.0.0.9:5->10.0.0.1:443: i/o timeout"`:                                            "10.0.0.1:443 accepts connections and does not answer",
		`connection error: desc = "error reading server preface: context deadline exceeded"`:                                                                 "the server accepts connections and does not answer",
		`connection error: desc = "transport: authentication handshake failed: context deadline exceeded"`:                                                   "the server accepts connections and does not answer the TLS handshake",
		`connection error: desc = "error reading server preface: raw-read tcp 10.0.0.9:5->10.0.0.1:443: use of closed network connection"`:                   "10.0.0.1:443 accepts connections and does not answer",
		`connection error: desc = "error reading server preface: EOF"`:                                                                                       "error reading server preface: EOF",
		"lookup a.example.com on 10.0.0.2:53: no such host":                                                                                                  "lookup a.example.com on 10.0.0.2:53: no such host: the name may not exist",
		`connection error: desc = "error reading server preface: remote error: tls: certificate required"`:                                                   "error reading server preface: remote error: tls: certificate required: the server wants a client certificate",
		"dial unix /run/x: connect: connection refused":                                                                                                      "connection refused by /run/x",
		"rpc error: code = Unavailable desc = going away":                                                                                                    "rpc error: code = Unavailable desc = going away",
		"rpc error: code = PermissionDenied desc = who are you":                                                                                              "rpc error: code = PermissionDenied desc = who are you",
		"": "",
	} {
		if got := Brief(given); got != want {
			t.Errorf("Brief(%s) = %s, want %s", given, got, want)
		}
	}
}
