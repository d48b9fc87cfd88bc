# Prints a mesh of 100 namespaces with 5 services of 10 pods each, as a stream of JSON objects: 20,000, of which 5,000 are pods. See ../meshes.md.
import json,sys
out=sys.stdout; n=0
def put(o):
    global n; n+=1; out.write(json.dumps(o)+"\n")
def meta(ns,name,**k): 
    m={'name':name,**k}
    if ns: m['namespace']=ns
    return m
NS,SVC,PODS=100,5,10
for i in range(NS):
    ns=f'team-{i:03d}'
    put({'apiVersion':'v1','kind':'Namespace','metadata':{'name':ns,'labels':{'istio-injection':'enabled'}}})
    put({'apiVersion':'networking.istio.io/v1','kind':'Sidecar','metadata':meta(ns,'default'),'spec':{'egress':[{'hosts':['./*','istio-system/*',f'team-{(i+1)%NS:03d}/*']}]}})
    put({'apiVersion':'security.istio.io/v1','kind':'PeerAuthentication','metadata':meta(ns,'default'),'spec':{'mtls':{'mode':'STRICT'}}})
    put({'apiVersion':'telemetry.istio.io/v1','kind':'Telemetry','metadata':meta(ns,'default'),'spec':{'accessLogging':[{'disabled':True}]}})
    for s in range(SVC):
        a=f'app-{s}'; lab={'app':a,'version':'v1'}
        put({'apiVersion':'v1','kind':'ServiceAccount','metadata':meta(ns,a)})
        put({'apiVersion':'v1','kind':'Service','metadata':meta(ns,a),'spec':{'selector':{'app':a},'ports':[{'name':'http','port':80,'targetPort':8080}]}})
        tpl={'metadata':{'labels':lab},'spec':{'serviceAccountName':a,'containers':[{'name':'app','image':'app','ports':[{'name':'http','containerPort':8080}]}]}}
        put({'apiVersion':'apps/v1','kind':'Deployment','metadata':meta(ns,a),'spec':{'replicas':PODS,'selector':{'matchLabels':lab},'template':tpl}})
        put({'apiVersion':'apps/v1','kind':'ReplicaSet','metadata':meta(ns,a+'-7d4b9c',ownerReferences=[{'apiVersion':'apps/v1','kind':'Deployment','name':a,'uid':f'{ns}-{a}','controller':True}]),'spec':{'replicas':PODS,'selector':{'matchLabels':lab},'template':tpl}})
        for p in range(PODS):
            put({'apiVersion':'v1','kind':'Pod','metadata':meta(ns,f'{a}-7d4b9c-{p:05d}',labels={**lab,'pod-template-hash':'7d4b9c'},annotations={'sidecar.istio.io/status':'{}'},ownerReferences=[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':a+'-7d4b9c','uid':'x','controller':True}]),
             'spec':{'serviceAccountName':a,'nodeName':f'node-{(i*7+p)%200}','containers':[{'name':'app','image':'app','ports':[{'name':'http','containerPort':8080}]},{'name':'istio-proxy','image':'istio/proxyv2:1.31.0'}]},'status':{'phase':'Running','podIP':f'10.{i}.{s}.{p+1}'}})
        put({'apiVersion':'networking.istio.io/v1','kind':'VirtualService','metadata':meta(ns,a),'spec':{'hosts':[a],'exportTo':['.'],'http':[{'timeout':'5s','route':[{'destination':{'host':a}}]}]}})
        put({'apiVersion':'networking.istio.io/v1','kind':'DestinationRule','metadata':meta(ns,a),'spec':{'host':f'{a}.{ns}.svc.cluster.local','trafficPolicy':{'connectionPool':{'tcp':{'connectTimeout':'30ms'}}}}})
        put({'apiVersion':'security.istio.io/v1','kind':'AuthorizationPolicy','metadata':meta(ns,a),'spec':{'selector':{'matchLabels':{'app':a}},'rules':[{'from':[{'source':{'namespaces':[ns,f'team-{(i-1)%NS:03d}']}}]}]}})
    for e in range(50):
        put({'apiVersion':'networking.istio.io/v1','kind':'ServiceEntry','metadata':meta(ns,f'ext-{e}'),'spec':{'hosts':[f'api-{e}.{ns}.example'],'exportTo':['.'],'location':'MESH_EXTERNAL','resolution':'DNS','ports':[{'number':443,'name':'tls','protocol':'TLS'}]}})
    for v in range(61):
        put({'apiVersion':'networking.istio.io/v1','kind':'VirtualService','metadata':meta(ns,f'route-{v}'),'spec':{'hosts':[f'host-{v}.{ns}.example'],'gateways':['istio-ingress/public'],'exportTo':['.'],'http':[{'route':[{'destination':{'host':f'app-{v%SVC}.{ns}.svc.cluster.local'}}]}]}})
sys.stderr.write(f'{n} objects\n')
