package failover

import (
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

// If two builders are given for a scheme, the first takes precedence, as with grpc.WithResolvers.
func TestFirstResolverOfSchemeIsUsed(t *testing.T) {
	first, second := newFakeBuilder(), newFakeBuilder()
	for name, option := range map[string]given.Option{
		"a": given.Sources(WithResolvers(first, second)),
		"b": given.Sources(WithResolvers(first), WithResolvers(second)),
	} {
		r, err := given.Builder(Scheme, option).Build(target(name), &channel{}, resolver.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		if first.resolvers[name] == nil || second.resolvers[name] != nil {
			t.Errorf("%s: the second builder was used", name)
		}
	}
}
