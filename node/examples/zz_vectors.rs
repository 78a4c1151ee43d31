//! throwaway
use antiphon_node::graph::*; use antiphon_node::vectors::*; use antiphon_node::mapped::Blob; use std::time::Instant;
fn cpu()->f64{ let s=std::fs::read_to_string("/proc/self/stat").unwrap(); let f:Vec<&str>=s.rsplit(')').next().unwrap().split_whitespace().collect(); f[11].parse::<f64>().unwrap()/100.0 }
fn half(b:[u8;2])->f32{ half::f16::from_le_bytes(b).to_f32() }
fn load(path:&str, n:usize)->Vec<Vec<f32>>{ let b=std::fs::read(path).unwrap(); let h=10+u16::from_le_bytes([b[8],b[9]]) as usize;
 b[h..].chunks(512).take(n).map(|r| r.chunks(2).map(|c| half([c[0],c[1]])).collect()).collect() }
struct R(u64); impl R{ fn u(&mut self)->f32{ self.0^=self.0<<13; self.0^=self.0>>7; self.0^=self.0<<17; (self.0>>40) as f32/16777216.0 } fn g(&mut self)->f32{ (0..12).map(|_|self.u()).sum::<f32>()-6.0 } }
fn run(name:&str, metric:Metric, data:&[Vec<f32>], queries:&[Vec<f32>], depths:&[usize], threads_repeat:usize){
 let dims=data[0].len(); let params=GraphParams{dims,metric,element:ElementType::BFloat16,connectivity:16,expansion_add:128};
 let vf=vector_file_in_memory(VectorFileParams{dims,metric,graph_element:Some(ElementType::BFloat16)}, data.iter().enumerate().map(|(i,v)|(i as u32,&v[..])), data.len() as u32).unwrap();
 let file=VectorFile::open(Blob::from_bytes(&vf),dims,data.len() as u32).unwrap();
 let c=cpu(); let t=Instant::now(); let mut b=GraphBuilder::new(&params,file.num_graph_nodes() as usize,file.max_norm()).unwrap();
 for s in 0..file.len(){ if file.is_graph_node(s){ b.add(s,file.vector(s).unwrap()).unwrap(); } }
 let add=t.elapsed(); let cadd=cpu()-c; let t=Instant::now(); let bytes=match b.finish(){Ok(b)=>b,Err(e)=>{println!("{name} {e}");return}}; let fin=t.elapsed();
 let graph=Graph::open(Blob::from_bytes(&bytes),&params,file.num_graph_nodes() as usize,1).unwrap();
 println!("{name}: strays {} nodes {} of {} add {add:.2?} cpu {cadd:.2} finish {fin:.2?} bytes/node {}", graph.strays().len(), graph.len(), file.len(), bytes.len()/graph.len());
 let t=Instant::now(); let truth:Vec<_>=queries.iter().map(|q| vector_window(&file,None,&Scorer::new(metric,q),1,None,100,true,&||false).unwrap()).collect(); println!("  scan {:.3?} each", t.elapsed()/queries.len() as u32);
 for &d in depths { let c=cpu(); let t=Instant::now(); let mut f=vec![]; for _ in 0..threads_repeat { f=queries.iter().map(|q| graph.search(q,d,None).unwrap()).collect::<Vec<_>>(); } let gt=t.elapsed()/(threads_repeat*queries.len()) as u32; let c=(cpu()-c)*1e6/(threads_repeat*queries.len()) as f64;
  let t=Instant::now(); let w:Vec<_>=queries.iter().map(|q| vector_window(&file,Some(&graph),&Scorer::new(metric,q),d,None,100,false,&||false).unwrap()).collect(); let wt=t.elapsed()/queries.len() as u32;
  let rec=|k:usize| { let mut h=0; let mut n=0; for (w,t) in w.iter().zip(&truth){ let k=k.min(t.len()); n+=k; h+=w.iter().take(k).filter(|x| t[..k].contains(x)).count(); } h as f64/n as f64};
  println!("  depth {d}: graph {gt:.3?} cpu {c:.0} us window {wt:.3?} recall@10 {:.4} @100 {:.4} (raw {})", rec(10), rec(100), f[0].len()); } }
fn main(){ let which=std::env::args().nth(1).unwrap(); let mut r=R(88172645463325252);
 if which=="kernel" { for d in [256,384,768,1024]{ let a:Vec<Vec<f32>>=(0..64).map(|_|(0..d).map(|_|r.g()).collect()).collect(); let t=Instant::now(); let mut s=0.0; let n=200000; for i in 0..n { s+=kernel::dot(std::hint::black_box(&a[i%64]),&a[(i*7)%64]); } println!("{d} dot {:?} ns {s}", t.elapsed().as_nanos() as f64/n as f64); let t=Instant::now(); for i in 0..n { s+=kernel::squared_distance(std::hint::black_box(&a[i%64]),&a[(i*7)%64]); } println!("{d} l2 {:?} ns {s}", t.elapsed().as_nanos() as f64/n as f64);} return }
 if which=="wordnet" { let all=load("/work/shared/data/wordnet/docs.npy",117659); let n:usize=std::env::args().nth(2).unwrap().parse().unwrap(); let data=all[..n].to_vec(); let held:Vec<_>=all[n..].iter().step_by(37).take(300).cloned().collect(); let pert:Vec<_>=data.iter().step_by(97).take(300).map(|v| v.iter().map(|x| x+0.02*r.g()).collect()).collect();
  for m in [Metric::Cosine,Metric::Dot,Metric::Euclidean]{ if std::env::args().nth(3).is_some() && m!=Metric::Cosine {continue} run(&format!("held-out {m:?}"),m,&data,&held,&[128,200,256],20); if m==Metric::Cosine { run(&format!("perturbed {m:?}"),m,&data,&pert,&[128,200,256],20);} } return }
 let n=20000; for (name,dims,cl,spread) in [("noise128",128,1,1.0f32),("tight",8,200,1e-3),("tight32",32,500,1e-2),("clust64",64,100,0.3),("noise768",768,1,1.0)] {
  let c:Vec<Vec<f32>>=(0..cl).map(|_|(0..dims).map(|_| if cl==1{0.0}else{r.g()}).collect()).collect();
  let data:Vec<Vec<f32>>=(0..n).map(|i| { let l=if which=="lengths" {r.g().exp()} else {1.0}; c[i%cl].iter().map(|x|(x+spread*r.g())*l).collect()}).collect();
  let q:Vec<Vec<f32>>=(0..100).map(|i| c[i%cl].iter().map(|x|x+spread*r.g()).collect()).collect();
  for m in [Metric::Cosine,Metric::Dot,Metric::Euclidean]{ run(&format!("{name} {m:?}"),m,&data,&q,&[128],1); } } }
