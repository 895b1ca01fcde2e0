package explain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/kubeconfig"
	"github.com/understudy-lb/understudy/internal/testing/kubetest"
)

func TestServiceWithKubeconfig(t *testing.T) {
	api := kubetest.Start(t)
	api.Set("web", "web-1", 443, `{"addresses":["10.0.0.1"],"conditions":{"ready":true},"zone":"a"}`)
	var out bytes.Buffer
	err := Run(t.Context(), Options{File: "kubernetes:///web.shop:grpc", Kubeconfig: kubeconfig.Options{Path: api.Kubeconfig(t)}, Out: &out})
	if err != nil || !strings.Contains(out.String(), "10.0.0.1:443") || !strings.Contains(out.String(), "100.00 %") {
		t.Errorf("%v\n%s\nwant all calls at 10.0.0.1:443", err, &out)
	}
}
