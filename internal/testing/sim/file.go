package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

// file is the source of a file: target. It's a real file, but its modification times come from the
// simulated clock. The channel has to poll it, because the system's notifications would come from
// outside the synctest bubble.
type file struct {
	dir       string
	aggregate bool
	truth     EndpointSet
	failing   bool
}

func newFile(w *World, truth EndpointSet, dir string) *file {
	f := &file{dir: filepath.Join(dir, "sim"), truth: truth, aggregate: w.rand.IntN(4) > 0}
	f.Restore()
	return f
}

func (f *file) path() string { return filepath.Join(f.dir, "endpoints.yaml") }

func (f *file) Target() string {
	if f.aggregate {
		return "file://" + f.path() + "?cluster=" + cluster
	}
	return "file://" + f.path()
}

func (f *file) KeepsEmptyPriorities() bool { return f.aggregate }

func (f *file) Options() []given.Option { return nil }

// Visible has a priority even if truth has none, because a file must list an endpoint.
func (f *file) Visible(truth EndpointSet) EndpointSet {
	if len(truth) == 0 {
		truth = withoutEmptyTiers(truth)
	}
	return truth
}

func (f *file) Publish(truth EndpointSet) {
	f.truth = truth
	if !f.failing {
		f.write(f.content(withoutEmptyTiers(truth)))
	}
}

// withoutEmptyTiers adds a draining endpoint to every priority that has none, because a file can't
// contain a cluster without endpoints. If there are no priorities at all, it adds one with such an
// endpoint. That happens when the file is an entry of a mixed source and the other entries have all
// the priorities.
func withoutEmptyTiers(truth EndpointSet) EndpointSet {
	if truth = truth.Clone(); len(truth) == 0 {
		truth = EndpointSet{{{Zone: "z", Weight: 1}}}
	}
	for _, tier := range truth {
		if tier.addressCount() == 0 {
			tier[0].Endpoints = []Endpoint{{Address: deadAddress, Weight: 1, Draining: true}}
		}
	}
	return truth
}

func (f *file) content(truth EndpointSet) []byte {
	if !f.aggregate {
		text, err := protojson.Marshal(truth.Cluster(cluster))
		f.must(err)
		return text
	}
	var list []json.RawMessage
	for _, c := range clusters(truth, true) {
		text, err := protojson.Marshal(c)
		f.must(err)
		list = append(list, text)
	}
	return marshal(map[string]any{"clusters": list})
}

func (f *file) write(content []byte) {
	f.must(os.MkdirAll(f.dir, 0o700))
	next := f.path() + ".next"
	f.must(os.WriteFile(next, content, 0o600))
	f.must(os.Chtimes(next, time.Now(), time.Now()))
	f.must(os.Rename(next, f.path()))
}

func (f *file) must(err error) {
	if err != nil {
		panic(err)
	}
}

func (f *file) Fail(r *rand.Rand) string {
	f.failing = true
	switch r.IntN(5) {
	case 0:
		f.must(os.Remove(f.path()))
		return "the file is removed"
	case 1:
		f.must(os.RemoveAll(f.dir))
		return "the file's directory is removed"
	case 2:
		content := f.content(f.truth)
		f.write(content[:len(content)/2])
		return "the file is cut in half"
	case 3:
		empty := f.truth.Clone()
		for _, tier := range empty {
			for i := range tier {
				tier[i].Endpoints = nil
			}
		}
		f.write(f.content(empty))
		return "the file lists no endpoint"
	}
	f.write([]byte(fmt.Sprintf(`{"clusterName": "sim", "endpoints": [{"loadBalancingWeight": 1, "priority": 7, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": %q, "portValue": 1}}}}]}]}`, "10.0.0.1")))
	return "the file has a gap in its priorities"
}

func (f *file) Restore() {
	f.failing = false
	f.Publish(f.truth)
}

// Lag is how long it takes the channel to poll the file and decide that it's complete.
func (f *file) Lag() time.Duration      { return 1500 * time.Millisecond }
func (f *file) Recovery() time.Duration { return f.Lag() }

func (f *file) Close() { f.must(os.RemoveAll(f.dir)) }
