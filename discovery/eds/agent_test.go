package eds

import (
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// A server is told which client it is, and in which version; a program that says so
// itself is believed.
func TestUserAgent(t *testing.T) {
	nodes := make(chan *corev3.Node, 1)
	address := serve(t, func(s *adstest.Stream) error {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		nodes <- r.GetNode()
		return s.Drain()
	})
	own := &corev3.Node{
		Id: "me", UserAgentName: "shop", ClientFeatures: []string{noOverprovisioning},
		UserAgentVersionType: &corev3.Node_UserAgentVersion{UserAgentVersion: "v7"},
	}
	for _, test := range []struct {
		opts          []Option
		name, version string
	}{
		{nil, "understudy", version()},
		{[]Option{WithNode(&corev3.Node{Id: "me"})}, "understudy", version()},
		{[]Option{WithNode(own)}, "shop", "v7"},
		{[]Option{WithNode(&corev3.Node{Id: "me", UserAgentName: "shop"})}, "shop", ""},
	} {
		build(t, "eds://"+address+"/c", test.opts...)
		got := wait(t, "node", nodes)
		if got.GetUserAgentName() != test.name || got.GetUserAgentVersion() != test.version {
			t.Errorf("the server is told %s %s, want %s %s", got.GetUserAgentName(), got.GetUserAgentVersion(), test.name, test.version)
		}
		if !slices.Equal(got.GetClientFeatures(), []string{noOverprovisioning}) {
			t.Errorf("the features are %q, want %s once", got.GetClientFeatures(), noOverprovisioning)
		}
	}
	if version() == "" {
		t.Error("the version is empty")
	}
}
