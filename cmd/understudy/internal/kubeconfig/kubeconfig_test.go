package kubeconfig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

// TestMain makes this test binary act as a credential plugin if KUBECONFIG_TEST_PLUGIN is set.
func TestMain(m *testing.M) {
	switch behaviour := os.Getenv("KUBECONFIG_TEST_PLUGIN"); behaviour {
	case "":
		os.Exit(m.Run())
	case "fail":
		fmt.Fprintln(os.Stderr, "please wait\nyour session is over")
		os.Exit(1)
	case "hang":
		select {}
	case "flood":
		for range 2000 {
			fmt.Print(strings.Repeat("x", 1000))
		}
	case "info":
		var info struct {
			Spec struct{ Cluster struct{ Server string } }
		}
		_ = json.Unmarshal([]byte(os.Getenv("KUBERNETES_EXEC_INFO")), &info)
		fmt.Printf(`{"apiVersion":%q,"kind":"ExecCredential","status":{"token":%q}}`, version, "for "+info.Spec.Cluster.Server)
	case "count":
		count, _ := os.ReadFile(os.Getenv("COUNT"))
		_ = os.WriteFile(os.Getenv("COUNT"), append(count, 'x'), 0o600)
		fmt.Printf(`{"apiVersion":%q,"kind":"ExecCredential","status":{"token":"run%s","expirationTimestamp":%q}}`, version, count, os.Getenv("EXPIRES"))
	default:
		fmt.Print(behaviour)
	}
}

const version = "client.authentication.k8s.io/v1"

// apiServer starts a server that returns the credentials of each request in a response header. It
// rejects the token "run".
func apiServer(t *testing.T) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		identity := r.Header.Get("Authorization")
		for _, c := range r.TLS.PeerCertificates {
			identity += "certificate of " + c.Subject.CommonName + strings.Join(c.DNSNames, "")
		}
		w.Header().Set("who", identity)
		if identity == "Bearer run" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
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
	host, rt, err := o.transport()
	if err != nil {
		return "", err
	}
	t.Cleanup(rt.base.CloseIdleConnections)
	return get(t, host, rt)
}

func get(t *testing.T, host string, rt *transport) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, host, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := rt.RoundTrip(r)
	if err != nil {
		return "", err
	}
	_ = response.Body.Close()
	return fmt.Sprint(response.StatusCode, " ", response.Header.Get("who")), nil
}

// execUser returns the user entry of a kubeconfig with a credential plugin. The plugin is this test
// binary with the given behaviour (see TestMain).
func execUser(behaviour string) string {
	return fmt.Sprintf("exec: {apiVersion: %s, command: %q, provideClusterInfo: true, env: [{name: KUBECONFIG_TEST_PLUGIN, value: %q}]}", version, os.Args[0], behaviour)
}

func TestServerAccess(t *testing.T) {
	s, dir := apiServer(t), t.TempDir()
	ca := "certificate-authority-data: " + encode(caPEM(s))
	pair := testcert.New(t).Pair("client", "client.test").Load(t)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	write(t, filepath.Join(dir, "ca.pem"), string(caPEM(s)))
	write(t, filepath.Join(dir, "token"), "in-a-file\n")
	printed, _ := json.Marshal(map[string]any{"apiVersion": version, "kind": "ExecCredential", "status": map[string]any{"clientCertificateData": string(certificate), "clientKeyData": string(secret)}})
	for name, test := range map[string]struct{ cluster, user, want string }{
		"nobody":                  {ca, "", "200 "},
		"a token":                 {ca, "token: abc", "200 Bearer abc"},
		"a token in a file":       {ca, "tokenFile: token", "200 Bearer in-a-file"},
		"roots in a file":         {"certificate-authority: ca.pem", "token: abc", "200 Bearer abc"},
		"no verification":         {"insecure-skip-tls-verify: true", "token: abc", "200 Bearer abc"},
		"another name":            {ca + ", tls-server-name: example.com", "", "200 "},
		"a certificate":           {ca, "client-certificate-data: " + encode(certificate) + ", client-key-data: " + encode(secret), "200 certificate of "},
		"a plugin's token":        {ca, execUser(`{"apiVersion":"` + version + `","kind":"ExecCredential","status":{"token":"abc"}}`), "200 Bearer abc"},
		"a plugin's certificate":  {ca, execUser(string(printed)), "200 certificate of "},
		"what a plugin learns":    {ca, execUser("info"), "200 Bearer for " + s.URL},
		"a certificate of others": {"", "", "certificate signed by unknown authority"},
	} {
		path := write(t, filepath.Join(dir, "config"), kubeconfigText(s.URL, test.cluster, test.user))
		got, err := sendRequest(t, Options{Path: path})
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) || strings.Contains(test.want, "Bearer") && got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestInvalidFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	const server = "https://10.0.0.1:6443"
	for name, test := range map[string]struct{ text, context, want string }{
		"no YAML":               {"a: b: c", "", path + ": yaml: "},
		"too large":             {strings.Repeat("#", maxFile+1), "", path + ": want a regular file of at most 1048576 bytes"},
		"no context":            {"{}", "", "no context is named; want current-context or --context"},
		"an unknown context":    {kubeconfigText(server, "", ""), "there", `there is no context "there"`},
		"an unknown cluster":    {"current-context: x\ncontexts: [{name: x, context: {cluster: y}}]", "", `there is no cluster "y"`},
		"an unknown user":       {"current-context: x\ncontexts: [{name: x, context: {cluster: y, user: z}}]\nclusters: [{name: y, cluster: {server: \"https://a\"}}]", "", `there is no user "z"`},
		"no server":             {kubeconfigText("", "", ""), "", `server is "", want one such as https://10.0.0.1:6443`},
		"no TLS":                {kubeconfigText("http://10.0.0.1", "", ""), "", `server is "http://10.0.0.1", want https beyond loopback`},
		"no base64":             {kubeconfigText(server, "certificate-authority-data: '%'", ""), "", "certificate-authority-data is not base64"},
		"no certificate":        {kubeconfigText(server, "certificate-authority-data: "+encode([]byte("x")), ""), "", "certificate-authority holds no certificate, want PEM"},
		"no such file":          {kubeconfigText(server, "certificate-authority: nowhere", ""), "", path + ": certificate-authority: stat " + dir + "/nowhere: no such file"},
		"half a pair":           {kubeconfigText(server, "", "client-certificate-data: "+encode([]byte("secret"))), "", `user "u": client-certificate and client-key are not a matching pair in PEM`},
		"a password":            {kubeconfigText(server, "", "username: u, password: hunter2"), "", "has a password or an auth-provider; want a certificate, a token, tokenFile or exec"},
		"an old plugin":         {kubeconfigText(server, "", "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}"), "", `exec has apiVersion "client.authentication.k8s.io/v1alpha1", want client.authentication.k8s.io/v1 or v1beta1`},
		"a plugin without name": {kubeconfigText(server, "", "exec: {apiVersion: "+version+"}"), "", "exec has no command"},
		"one that asks":         {kubeconfigText(server, "", "exec: {apiVersion: "+version+", command: x, interactiveMode: Always}"), "", "interactiveMode Always, but understudy never prompts"},
		"a proxy":               {kubeconfigText(server, "proxy-url: '::'", ""), "", "proxy-url does not parse"},
	} {
		write(t, path, test.text)
		if _, _, err := (Options{Path: path, Context: test.context}).transport(); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

func TestPluginErrors(t *testing.T) {
	s, path := apiServer(t), filepath.Join(t.TempDir(), "config")
	for behaviour, want := range map[string]string{
		"fail":        ": exit status 1: your session is over",
		"flood":       "it prints more than 1048576 bytes",
		"junk secret": "its output is not an ExecCredential of " + version + " in JSON",
		`{"apiVersion":"` + version + `","kind":"ExecCredential"}`:                                                                 "it prints neither a token nor a certificate",
		`{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","status":{"token":"secret"}}`:                "its output is not an ExecCredential of",
		`{"apiVersion":"` + version + `","kind":"ExecCredential","status":{"clientCertificateData":"secret","clientKeyData":"x"}}`: "are not a matching pair in PEM",
	} {
		write(t, path, kubeconfigText(s.URL, "certificate-authority-data: "+encode(caPEM(s)), execUser(behaviour)))
		if _, err := sendRequest(t, Options{Path: path}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.40s: %v, want %s", behaviour, err, want)
		}
	}
	write(t, path, kubeconfigText(s.URL, "", execUser("hang")))
	_, rt, err := Options{Path: path}.transport()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := rt.credentials(ctx); err == nil {
		t.Error("a plugin that hangs gives credentials")
	}
}

// A plugin runs again only after the server has rejected its credentials.
func TestPluginRunsAgainAfterRejection(t *testing.T) {
	s, dir := apiServer(t), t.TempDir()
	t.Setenv("COUNT", filepath.Join(dir, "count"))
	t.Setenv("EXPIRES", "2999-01-01T00:00:00Z")
	path := write(t, filepath.Join(dir, "config"), kubeconfigText(s.URL, "certificate-authority-data: "+encode(caPEM(s)), execUser("count")))
	host, rt, err := Options{Path: path}.transport()
	if err != nil {
		t.Fatal(err)
	}
	defer rt.base.CloseIdleConnections()
	for _, want := range []string{"401 Bearer run", "200 Bearer runx", "200 Bearer runx"} {
		if got, err := get(t, host, rt); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

// A plugin runs again when its credentials have expired. If they are always expired, it does not
// run for each request.
func TestPluginRunsAgainAfterExpiry(t *testing.T) {
	t.Setenv("KUBECONFIG_TEST_PLUGIN", "count")
	for expires, want := range map[string]string{"2999-01-01T00:00:00Z": "run run run", "2001-01-01T00:00:00Z": "run run runx"} {
		t.Setenv("COUNT", filepath.Join(t.TempDir(), "count"))
		t.Setenv("EXPIRES", expires)
		p, err := (&plugin{APIVersion: version, Command: os.Args[0]}).prepare("", cluster{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var tokens []string
		for i := range 3 {
			if i == 2 {
				p.lastRun = p.lastRun.Add(-minRunInterval)
			}
			c, err := p.credentials(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, c.token)
		}
		if got := strings.Join(tokens, " "); got != want {
			t.Errorf("expiring in %s: %s, want %s", expires[:4], got, want)
		}
	}
}

// KUBECONFIG may list several files. The first value of a field is used, and missing files are
// skipped.
func TestSeveralFiles(t *testing.T) {
	s, dir := apiServer(t), t.TempDir()
	first := write(t, filepath.Join(dir, "one"), "current-context: here\nusers: [{name: u, user: {token: first}}]")
	second := write(t, filepath.Join(dir, "two"), kubeconfigText(s.URL, "certificate-authority-data: "+encode(caPEM(s)), "token: second"))
	t.Setenv("KUBECONFIG", strings.Join([]string{filepath.Join(dir, "nowhere"), "", first, second}, string(os.PathListSeparator)))
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
		if err != nil && test.options == (Options{}) && !strings.HasPrefix(err.Error(), "not in a cluster, and there is no kubeconfig (stat ") {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
