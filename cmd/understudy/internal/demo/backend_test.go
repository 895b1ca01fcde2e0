package demo

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// A new mode takes effect at once, even for connections that exist, and a backend that is killed
// keeps its address.
func TestBackendTakesEachMode(t *testing.T) {
	t.Parallel()
	b := &backend{}
	defer b.set(killed)
	if err := b.set(serving); err != nil {
		t.Fatal(err)
	}
	cc, err := grpc.NewClient(b.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	for _, test := range []struct {
		mode mode
		want codes.Code
	}{
		{serving, codes.OK}, {failing, codes.Internal}, {hung, codes.DeadlineExceeded}, {hung, codes.DeadlineExceeded}, {failing, codes.Internal},
		{hung, codes.DeadlineExceeded}, {killed, codes.Unavailable}, {killed, codes.Unavailable}, {serving, codes.OK},
	} {
		if err := b.set(test.mode); err != nil {
			t.Fatal(err)
		}
		var answer string
		for code := codes.Code(100); code != test.want; code = status.Code(err) {
			if err = t.Context().Err(); err != nil {
				t.Fatal(err)
			}
			answer, err = callWhoAmI(t.Context(), cc)
			if test.mode != serving { // which reconnects first
				break
			}
		}
		if status.Code(err) != test.want || err == nil && answer != b.address {
			t.Errorf("a backend that is %s answers %q, %v; want %v", test.mode, answer, err, test.want)
		}
	}
}
