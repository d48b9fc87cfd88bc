package server

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Audience is the audience that tokens must have.
const Audience = "scaler-reference"

// anybody does not look at tokens.
func anybody(context.Context) (string, error) { return "", nil }

// reviewer returns a function that has a call's bearer token reviewed by the
// API server and returns the identity of its service account.
func reviewer(client kubernetes.Interface) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		var token string
		if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) > 0 {
			token, _ = strings.CutPrefix(values[0], "Bearer ")
		}
		if token == "" {
			return "", status.Error(codes.Unauthenticated, "want a bearer token")
		}
		review, err := client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", status.Errorf(codes.Unavailable, "having a token reviewed: %v", err)
		}
		if !review.Status.Authenticated {
			return "", status.Errorf(codes.Unauthenticated, "the API server does not know the token: %s", review.Status.Error)
		}
		account, ok := strings.CutPrefix(review.Status.User.Username, "system:serviceaccount:")
		namespace, name, both := strings.Cut(account, ":")
		if !ok || !both {
			return "", status.Errorf(codes.Unauthenticated, "the token is of %s, want a service account", review.Status.User.Username)
		}
		return SPIFFE(namespace, name), nil
	}
}
