package server

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Where a cluster keeps the authority: the Secret's keys are those of a TLS
// Secret. The namespace must exist.
const (
	Namespace       = "scaler-reference"
	AuthoritySecret = "authority"
)

// KeptAuthority returns the authority that a cluster keeps in its Secret, made and
// put there if it has none yet: so that one that is started again goes on
// issuing from the same root.
func KeptAuthority(ctx context.Context, client kubernetes.Interface) (*Authority, error) {
	secrets := client.CoreV1().Secrets(Namespace)
	secret, err := secrets.Get(ctx, AuthoritySecret, metav1.GetOptions{})
	if err == nil {
		return ParseAuthority(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading secret %s/%s: %w", Namespace, AuthoritySecret, err)
	}
	authority, err := NewAuthority()
	if err != nil {
		return nil, err
	}
	rootPEM, keyPEM, err := authority.Encode()
	if err != nil {
		return nil, err
	}
	_, err = secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: AuthoritySecret},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: rootPEM, corev1.TLSPrivateKeyKey: keyPEM},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("keeping the authority in secret %s/%s: %w", Namespace, AuthoritySecret, err)
	}
	return authority, nil
}
