package eds

import (
	"strings"
	"testing"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/testing/given"
)

func TestBuildErrors(t *testing.T) {
	disabled := resolver.BuildOptions{DisableServiceConfig: true}
	if _, err := given.Builder(Scheme).Build(target(t, "eds://h:1/c"), newChannel(), disabled); err == nil || !strings.Contains(err.Error(), "WithDisableServiceConfig") {
		t.Errorf("with service configs disabled: %v, want an error that names the option", err)
	}
	for _, test := range []struct {
		target string
		opts   []given.Option
		want   string
	}{
		{"eds://h/c", nil, `has the server "h"`},
		{"eds:///c", nil, "names no server, and neither does an xDS bootstrap (GRPC_XDS_BOOTSTRAP)"},
		{"eds://h:1/c", []given.Option{given.Set("ServiceConfig", `{"loadBalancingConfig":[]}`)}, "loadBalancingConfig is set by the resolver"},
	} {
		if got := buildError(t, test.target, test.opts...); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %q", test.target, got, test.want)
		}
	}
}
