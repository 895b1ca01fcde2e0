package eds

import (
	"net/url"
	"testing"
	"time"

	"google.golang.org/grpc/keepalive"
)

func TestKeepaliveOfATarget(t *testing.T) {
	set := &keepalive.ClientParameters{Time: time.Minute, Timeout: 10 * time.Second}
	for _, test := range []struct {
		query  string
		option *keepalive.ClientParameters
		want   keepalive.ClientParameters // zero: the default
	}{
		{"", nil, keepalive.ClientParameters{}},
		{"", set, *set},
		{"keepaliveTime=20s&keepaliveTimeout=5s", nil, keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}},
		{"keepaliveTime=20s", set, keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}},
		{"keepaliveTimeout=5s", set, keepalive.ClientParameters{Time: time.Minute, Timeout: 5 * time.Second}},
	} {
		query, err := url.ParseQuery(test.query)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := keepaliveOf(query, test.option); err != nil || got != test.want {
			t.Errorf("%q beside the option %v is %+v, %v; want %+v", test.query, test.option, got, err, test.want)
		}
	}
}
