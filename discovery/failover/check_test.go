package failover

import (
	"net/url"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

func check(target string, opts ...given.Option) error {
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	return given.Builder(Scheme, opts...).Check(resolver.Target{URL: *u}, false)
}
