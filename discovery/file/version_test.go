package file

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

type answers chan discovery.Answer

func (a answers) Update(answer discovery.Answer) error { a <- answer; return nil }
func (a answers) Fail(error)                           {}

func TestAnswersHaveVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.yaml")
	seen := make(map[string]bool)
	for _, port := range []string{"1", "2"} {
		text := "endpoints: [{lbEndpoints: [{endpoint: {address: {socketAddress: {address: 10.0.0.1, portValue: " + port + "}}}}]}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		told := make(answers, 1)
		w, err := (&source{path: path}).Start(flat.Receiver(told))
		if err != nil {
			t.Fatal(err)
		}
		select {
		case answer := <-told:
			seen[answer.Version] = len(answer.Version) == 8
		case <-time.After(patient):
			t.Fatal("no answer")
		}
		w.Close()
	}
	if len(seen) != 2 || seen[""] {
		t.Errorf("two contents have the versions %v", seen)
	}
}
