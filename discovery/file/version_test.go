package file

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

type answerChan chan discovery.Answer

func (a answerChan) Update(answer discovery.Answer) error { a <- answer; return nil }
func (a answerChan) Fail(error)                           {}

func TestAnswersHaveVersions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.yaml")
	versions := make(map[string]bool)
	for _, port := range []string{"1", "2"} {
		text := "endpoints: [{lbEndpoints: [{endpoint: {address: {socketAddress: {address: 10.0.0.1, portValue: " + port + "}}}}]}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		received := make(answerChan, 1)
		w, err := (&source{watched: watched{path: path}}).Start(flat.Receiver(received))
		if err != nil {
			t.Fatal(err)
		}
		select {
		case answer := <-received:
			versions[answer.Version] = len(answer.Version) == 8
		case <-time.After(testTimeout):
			t.Fatal("no answer")
		}
		w.Close()
	}
	if len(versions) != 2 || versions[""] {
		t.Errorf("two contents have the versions %v", versions)
	}
}
