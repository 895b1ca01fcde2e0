package file

import (
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/sourcetest"
	"github.com/understudy-lb/understudy/internal/envoy/filewatch"
)

// The source polls the file, because the notifications of the operating system do not work in a
// synctest bubble.
func TestSourceContract(t *testing.T) {
	t.Parallel()
	for about, content := range map[string]string{
		"endpoints": onePort(1),
		"broken":    "endpoints: [",
		"missing":   "",
	} {
		t.Run(about, func(t *testing.T) {
			path := newPath(t)
			if content != "" {
				write(t, path, content)
			}
			sourcetest.Run(t, func(*testing.T) discovery.Source {
				return &source{watched: watched{path, filewatch.Options{PollOnly: true}}}
			})
		})
	}
}
