package sim

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestBookmarkFollowsPendingEvents(t *testing.T) {
	s := newAPIServer(t.Context(), rand.New(rand.NewPCG(1, 1))) //nolint:gosec // draws a schedule, not a secret
	w := &apiWatch{apiServer: s, services: []string{"a"}, sentVersion: s.version}
	s.set("a-0", kubeSlice{service: "a", endpoints: []kubeEndpoint{{address: "10.0.0.3:443"}}})
	text := w.bookmark()
	if added, mark := strings.Index(text, "ADDED"), strings.Index(text, "BOOKMARK"); added < 0 || mark < added {
		t.Errorf("the watch sends %q, want the event and then the bookmark", text)
	}
	if text := w.takeEvents(); text != "" {
		t.Errorf("the watch sends %q again", text)
	}
}
