package priority_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "github.com/understudy-lb/understudy/internal/core/priority"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

var (
	record = flag.Bool("record", false, "write the golden transcripts of A56 instead of comparing them: only for a change of A56 itself")
	show   = flag.Uint64("show", 0, "print the transcript of this seed")
)

const (
	transcripts = "testdata/a56/transcripts"
	seeds       = 500
)

// With none of our options set, the policy does today exactly what it did when the golden files
// were recorded, before shares existed. Each line of the file digests has a seed, the digests of
// what the policy did after each event, and those of the whole actions, which include timers.
//
// If a seed differs, run the test with -show on this commit and on one that passes, and compare.
func TestA56IsTheSameAsEver(t *testing.T) {
	file := filepath.Join(transcripts, "digests")
	var got bytes.Buffer
	for seed := range uint64(seeds) {
		outside, whole := transcribe(t, seed)
		fmt.Fprintln(&got, seed, scenario.Digests(outside), scenario.Digests(whole))
	}
	if *record {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, lines := strings.Split(string(golden), "\n"), strings.Split(got.String(), "\n")
	if len(want) != len(lines) {
		t.Fatalf("%s has %d lines, want %d", file, len(want), len(lines))
	}
	differ := 0
	for i := range lines {
		if lines[i] != want[i] && differ < 5 {
			differ++
			t.Errorf("the transcript of seed %d differs:\n got %s\nwant %s", i, lines[i], want[i])
		}
	}
}

// transcribe returns what the policy does outside, and the same with each action of the core.
func transcribe(t *testing.T, seed uint64) (outside, whole []string) {
	events := scenario.A56Events(seed)
	outside, err := scenario.Transcribe(newTarget(), events, nil)
	if err != nil {
		t.Fatal(err)
	}
	target, actions := newTarget(), []string(nil)
	target.observe = func(a core.Action) { actions = append(actions, describe(a)) }
	whole, err = scenario.Transcribe(target, events, func() []string {
		taken := actions
		actions = nil
		return taken
	})
	if err != nil {
		t.Fatal(err)
	}
	if *show == seed && *show > 0 {
		fmt.Println(strings.Join(whole, "\n"))
	}
	return outside, whole
}

// describe writes an action as text. The kinds are written by name, so that the transcripts stay
// the same when kinds come and go.
func describe(a core.Action) string {
	text := "  -> " + kindNames[a.Kind] + " " + a.Child
	if a.After > 0 {
		text += " " + a.After.String()
	}
	return strings.TrimRight(text, " ")
}

var kindNames = map[core.Kind]string{
	core.Create: "create", core.Update: "update", core.Destroy: "destroy",
	core.StartFailover: "start-failover", core.StopFailover: "stop-failover",
	core.StartDeactivation: "start-deactivation", core.StopDeactivation: "stop-deactivation",
	core.Publish: "publish", core.PublishRefused: "publish-refused", core.PublishTimeout: "publish-timeout", core.PublishEmpty: "publish-empty",
}
