package eds

import (
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

type answerRecorder struct {
	discovery.Receiver
	last discovery.Answer
}

func (a *answerRecorder) Update(answer discovery.Answer) error {
	a.last = answer
	return nil
}

func TestAnswersHaveVersions(t *testing.T) {
	var r answerRecorder
	sendState(flat.Receiver(&r), stateOf(t, adstest.Cluster("c", "10.0.0.1:1")))
	if r.last.Version != "7" {
		t.Errorf("the answer has the version %q, want 7", r.last.Version)
	}
}
