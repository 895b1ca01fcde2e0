package file

import (
	"testing"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/sourcetest"
)

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
				return &source{watched: watched{path}}
			})
		})
	}
}
