package priority

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"

	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

// With none of our options set, the whole policy does what the golden files of its core say. They
// were recorded before shares existed.
func TestA56IsTheSameAsEver(t *testing.T) {
	golden, err := os.ReadFile("../../internal/core/priority/testdata/a56/transcripts/digests")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for seed, line := range strings.Split(strings.TrimSpace(string(golden)), "\n") {
		events := scenario.A56Events(uint64(seed))
		certain, err := scenario.Certain(events)
		if err != nil {
			t.Fatal(err)
		}
		var transcripts []string
		synctest.Test(t, func(t *testing.T) {
			if transcripts, err = scenario.Transcribe(newRecorder(), events, nil); err != nil {
				t.Error(err)
			}
		})
		got, want := scenario.Digests(transcripts)[:2*certain], strings.Fields(line)[1][:2*certain]
		for i := range certain {
			if got[2*i:2*i+2] != want[2*i:2*i+2] {
				t.Errorf("seed %d: event %d differs from the core's golden transcript; the policy did:\n%s", seed, i, transcripts[i])
				break
			}
		}
		total += certain
	}
	t.Logf("%d events", total)
}
