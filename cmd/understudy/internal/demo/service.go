package demo

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const whoAmI = "/understudy.demo.v1.Demo/WhoAmI"

type demoServer interface {
	whoAmI(context.Context) (string, error)
}

var serviceDesc = grpc.ServiceDesc{
	ServiceName: "understudy.demo.v1.Demo",
	HandlerType: (*demoServer)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "WhoAmI",
		Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			if err := decode(&emptypb.Empty{}); err != nil {
				return nil, err
			}
			name, err := srv.(demoServer).whoAmI(ctx)
			return wrapperspb.String(name), err
		},
	}},
}

func callWhoAmI(ctx context.Context, cc grpc.ClientConnInterface) (string, error) {
	var answer wrapperspb.StringValue
	err := cc.Invoke(ctx, whoAmI, &emptypb.Empty{}, &answer)
	return answer.GetValue(), err
}
