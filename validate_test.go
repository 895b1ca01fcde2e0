package understudy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy"
)

// Validate reads files and reports mistakes with their positions. NewClient does not read them,
// because they may be corrected later.
func TestValidateReadsFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const good = "endpoints:\n- lb_endpoints:\n  - endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: 443}}}\n"
	bad := strings.Replace(good, "443", "70000", 1)
	for _, test := range []struct{ target, bootstrap, wantErr string }{
		{"file://" + write("good.yaml", good), "", ""},
		{"file://" + write("bad.yaml", bad), "", "bad.yaml:3:75: port_value is 70000"},
		{"failover:///file://" + filepath.Join(dir, "bad.yaml") + ",a:1", "", "bad.yaml:3:75: port_value is 70000"},
		{"file://" + filepath.Join(dir, "none.yaml"), "", "none.yaml: no such file"},
		{"file://" + filepath.Join(dir, "good.yaml") + "?cluster=other", "", "good.yaml: cluster \"other\": the file has no such cluster, want one of \"good\""},
		{"eds:///shop", filepath.Join(dir, "none.json"), "none.json: no such file"},
		{"eds:///shop", write("half.json", "{"), "half.json (GRPC_XDS_BOOTSTRAP): not the JSON of a bootstrap"},
		{"eds:///shop", write("b.json", `{"xds_servers": [{"server_uri": "127.0.0.1:1", "channel_creds": [{"type": "insecure"}]}]}`), ""},
		{"a:1,b:2", "", ""},
	} {
		t.Setenv("GRPC_XDS_BOOTSTRAP", test.bootstrap)
		err := understudy.Validate(test.target, understudy.Recommended())
		if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
			t.Errorf("%s: Validate = %v, want %q", test.target, err, test.wantErr)
		}
		cc, err := newClient(test.target, understudy.Recommended())
		if err != nil {
			t.Errorf("%s: NewClient = %v, want no error", test.target, err)
			continue
		}
		cc.Close()
	}
}
