package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func checkError(t *testing.T, err error, secret string) {
	t.Helper()
	if text := err.Error(); strings.ContainsAny(text, "\n\r\x00\x1b") || len(text) > 2000 || strings.Contains(text, secret) {
		t.Errorf("error is not a short line, or has a secret: %.3000q", text)
	}
}

// FuzzFile reads arbitrary kubeconfigs. Each file is either rejected with a short error of one
// line, or results in a server and a transport. No error contains the token.
func FuzzFile(f *testing.F) {
	const secret = "hunter2-hunter2"
	for _, seed := range []string{
		"current-context: here\ncontexts: [{name: here, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: https://10.0.0.1:6443}}]\nusers: [{name: u, user: {token: " + secret + "}}]\n",
		`{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a"}}],"clusters":[{"name":"a","cluster":{"server":"http://127.0.0.1:1","insecure-skip-tls-verify":true,"proxy-url":"x","certificate-authority-data":"YQ=="}}]}`,
		"current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: 'https://a', tls-server-name: b}}]\nusers: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./x, provideClusterInfo: true}}}]\n",
		"users:\n- name: u\n  user:\n    token: [" + secret + "]\n", "users: [{name: u, user: {client-certificate-data: '" + secret + "'}}]\n", "a: &a [*a, *a]", "- x", "\x00", "clusters: 7", "{",
	} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "config")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		server, transport, err := Options{Path: path}.transport()
		if err != nil {
			checkError(t, err, secret)
			return
		}
		if transport == nil || !strings.Contains(server, "://") {
			t.Errorf("server %q, transport %v", server, transport)
		}
	})
}

// FuzzPlugin checks that errors contain no part of a plugin's output.
func FuzzPlugin(f *testing.F) {
	const version = "client.authentication.k8s.io/v1"
	for _, seed := range []string{
		`{"apiVersion":"` + version + `","kind":"ExecCredential","status":{"token":"t","expirationTimestamp":"2026-01-02T03:04:05Z"}}`,
		`{"apiVersion":"` + version + `","kind":"ExecCredential","status":{"clientCertificateData":"a","clientKeyData":"b"}}`,
		`{"apiVersion":"` + version + `","kind":"ExecCredential","status":{"expirationTimestamp":"soon"}}`,
		`{"apiVersion":"` + version + `","kind":"ExecCredential"}`, `{"kind":"x"}`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	errs := []string{
		"its output is not an ExecCredential of " + version + " in JSON",
		"its clientCertificateData and clientKeyData are not a matching pair in PEM",
		"it prints neither a token nor a certificate",
	}
	f.Fuzz(func(t *testing.T, printed []byte) {
		c, _, err := (&plugin{APIVersion: version}).parse(printed)
		if err == nil {
			if c.token == "" && c.certificate == nil {
				t.Error("there is neither a token nor a certificate")
			}
			return
		}
		for _, known := range errs {
			if err.Error() == known {
				return
			}
		}
		t.Errorf("error %q, want one of %q", err, errs)
	})
}
