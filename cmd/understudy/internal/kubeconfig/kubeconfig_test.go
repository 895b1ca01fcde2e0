package kubeconfig

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain makes this test binary act as a credential plugin if KUBECONFIG_TEST_PLUGIN is set.
func TestMain(m *testing.M) {
	if printed := os.Getenv("KUBECONFIG_TEST_PLUGIN"); printed != "" {
		fmt.Print(printed)
		return
	}
	os.Exit(m.Run())
}

const version = "client.authentication.k8s.io/v1"

// apiServer starts a server that returns the credentials of each request in a response header.
func apiServer(t *testing.T) *httptest.Server {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("who", r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	return s
}

func caPEM(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func encode(text []byte) string { return base64.StdEncoding.EncodeToString(text) }

func kubeconfigText(server, cluster, user string) string {
	return fmt.Sprintf(`
current-context: here
contexts: [{name: here, context: {cluster: c, user: u, namespace: shop}}]
clusters: [{name: c, cluster: {server: %q, %s}}]
users: [{name: u, user: {%s}}]
`, server, cluster, user)
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func sendRequest(t *testing.T, o Options) (string, error) {
	t.Helper()
	host, transport, err := o.transport()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, host, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	_ = response.Body.Close()
	return fmt.Sprint(response.StatusCode, " ", response.Header.Get("who")), nil
}

// execUser returns the user entry of a kubeconfig with a credential plugin that is this test
// binary.
func execUser(mode string) string {
	printed := fmt.Sprintf(`{"apiVersion":%q,"kind":"ExecCredential","status":{"token":"printed"}}`, version)
	return fmt.Sprintf("exec: {apiVersion: %s, command: %q, interactiveMode: %s, env: [{name: KUBECONFIG_TEST_PLUGIN, value: %q}]}", version, os.Args[0], mode, printed)
}

// Names of files are relative to the kubeconfig. A plugin cannot ask for anything.
func TestServerAccess(t *testing.T) {
	s, dir := apiServer(t), t.TempDir()
	ca := "certificate-authority-data: " + encode(caPEM(s))
	write(t, filepath.Join(dir, "ca.pem"), string(caPEM(s)))
	write(t, filepath.Join(dir, "token"), "in-a-file\n")
	for name, test := range map[string]struct{ cluster, user, want string }{
		"nobody":                  {ca, "", "200 "},
		"a token":                 {ca, "token: abc", "200 Bearer abc"},
		"a token in a file":       {ca, "tokenFile: token", "200 Bearer in-a-file"},
		"roots in a file":         {"certificate-authority: ca.pem", "token: abc", "200 Bearer abc"},
		"a plugin's token":        {ca, execUser("Never"), "200 Bearer printed"},
		"a plugin that asks":      {ca, execUser("Always"), "cannot support interactive mode"},
		"a certificate of others": {"", "", "certificate signed by unknown authority"},
	} {
		path := write(t, filepath.Join(dir, "config"), kubeconfigText(s.URL, test.cluster, test.user))
		got, err := sendRequest(t, Options{Path: path})
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	path := filepath.Join(t.TempDir(), "config")
	for name, test := range map[string]struct{ text, context, want string }{
		"no YAML":            {"a: b: c", "", path},
		"no context":         {"{}", "", "not in a cluster, and there is no kubeconfig with a current context; want --kubeconfig FILE or --context NAME"},
		"an unknown context": {kubeconfigText("https://10.0.0.1", "", ""), "there", `kubeconfig: context "there" does not exist`},
		"no server":          {kubeconfigText("", "", "token: hunter2"), "", "kubeconfig: invalid configuration: "},
		"no TLS":             {kubeconfigText("HTTP://10.0.0.1:8080", "", ""), "", "HTTP://10.0.0.1:8080\", want https beyond loopback"},
		"no such file":       {kubeconfigText("https://10.0.0.1", "certificate-authority: nowhere", ""), "", filepath.Join(filepath.Dir(path), "nowhere")},
	} {
		write(t, path, test.text)
		_, err := Options{Path: path, Context: test.context}.Sources("kubernetes:///web.shop:grpc")
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

// KUBECONFIG may list several files. The first value of a field is used, and missing files are
// skipped.
func TestSeveralFiles(t *testing.T) {
	s, dir := apiServer(t), t.TempDir()
	first := write(t, filepath.Join(dir, "one"), "current-context: here\nusers: [{name: u, user: {token: first}}]")
	second := write(t, filepath.Join(dir, "two"), kubeconfigText(s.URL, "certificate-authority-data: "+encode(caPEM(s)), "token: second"))
	t.Setenv("KUBECONFIG", strings.Join([]string{filepath.Join(dir, "nowhere"), first, second}, string(os.PathListSeparator)))
	if got, err := sendRequest(t, Options{}); err != nil || got != "200 Bearer first" {
		t.Errorf("%s, %v; want the first token", got, err)
	}
}

func TestWhenKubeconfigIsRead(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "nowhere"))
	for _, test := range []struct {
		pod, target string
		options     Options
		reads       bool
	}{
		{"", "srv:///kubernetes.test", Options{}, false},
		{"", "file:///etc/kubernetes/shop.yaml", Options{}, false},
		{"", "kubernetes:///web.shop:grpc", Options{}, true},
		{"", "failover:///k8s:%2F%2F%2Fweb.shop,dns:%2F%2F%2Fa", Options{}, true},
		{"10.0.0.1", "kubernetes:///web.shop:grpc", Options{}, false},
		{"10.0.0.1", "kubernetes:///web.shop:grpc", Options{Context: "x"}, true},
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", test.pod)
		sources, err := test.options.Sources("dns:///a", test.target)
		if (err != nil) != test.reads || sources != nil {
			t.Errorf("%+v: %v, %v", test, sources, err)
		}
		if err != nil && test.options == (Options{}) && !strings.HasPrefix(err.Error(), "not in a cluster, and there is no kubeconfig ") {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
