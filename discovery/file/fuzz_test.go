package file_test

import (
	"testing"

	"github.com/understudy-lb/understudy/discovery/file"
	"github.com/understudy-lb/understudy/internal/testing/given"
)

func FuzzTarget(f *testing.F) {
	for _, seed := range []string{
		"file:///etc/shop.yaml", "file:///a.json?cluster=b", "file:a.yaml", "file://host/a", "file:///a#b", "file:///", "file:///%00%0a?cluster=%ff",
		"file:///a?refresh=2s&removeAfter=1&zone=z&prefer=zone", "file:///é.yaml?authority=b", "file:///a?",
	} {
		f.Add(seed)
	}
	b := given.Builder(file.Scheme)
	f.Fuzz(func(t *testing.T, text string) { given.CheckTarget(t, b, text) })
}
